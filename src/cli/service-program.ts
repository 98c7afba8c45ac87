/** Programs of the service that `svc` starts on its terminal: they have the database's driver. */
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { Exit, exitCodes, usageFailure } from "./failures.ts"

const missing = usageFailure(
  "The service is not installed here: this command needs its Postgres driver.",
  "npm install @player-backend/server   installs it"
)

/** Finds a program. In the package it is that of `@player-backend/server`, which the game installs. */
const find = (program: () => string) =>
  Effect.try({ try: () => fileURLToPath(program()), catch: () => missing })

/** Runs a program with these words; fails as it does. */
export const runProgram = Effect.fnUntraced(function* (
  program: () => string,
  words: ReadonlyArray<string>
) {
  const file = yield* find(program)
  const code = yield* Effect.callback<number>((resume) => {
    const child = spawn(process.execPath, [file, ...words], { stdio: "inherit" })
    child.on("error", () => resume(Effect.succeed(exitCodes.no)))
    child.once("exit", (exitCode) => resume(Effect.succeed(exitCode ?? exitCodes.no)))
    return Effect.sync(() => child.kill("SIGTERM"))
  })
  if (code !== 0) return yield* new Exit({ exitCode: exitCodes.no })
})
