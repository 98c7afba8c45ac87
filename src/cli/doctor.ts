/** `svc doctor`: checks what a game needs to reach its service, and says what to do about each fault. */
import { Config, Effect, Option } from "effect"
import { Command } from "effect/cli"
import type { EnvironmentName } from "#rpc/auth"
import manifest from "../../package.json" with { type: "json" }
import { Exit, exitCodes } from "./failures.ts"
import { environmentFlag } from "./files.ts"
import { printResult, styled } from "./output.ts"
import { resolveTarget } from "./checked-target.ts"
import { currentUrl, localDataDirectory } from "./target.ts"
import { type Check, type CheckStatus, failed, nodeCheck } from "./doctor-checks.ts"
import { checkDatabase, checkDataDirectory, installedPackages } from "./doctor-local.ts"
import { checkService } from "./doctor-service.ts"

const out = styled("stdout")

const variable = (name: string) => Effect.orDie(Config.option(Config.String(name)))

const unlinked = failed(
  "service",
  "this folder has no service",
  "svc link https://play.example.com, or start one here: svc dev, npm start"
)

const allChecks = Effect.fnUntraced(function* (env: Option.Option<EnvironmentName>) {
  const url = yield* currentUrl
  const directory = yield* localDataDirectory
  const databaseUrl = yield* variable("DATABASE_URL")
  const remote =
    url === undefined
      ? [unlinked]
      : yield* checkService(
          {
            url,
            cli: manifest.version,
            installed: installedPackages(process.cwd())
          },
          resolveTarget(env)
        )
  const data = Option.isNone(directory) ? [] : yield* checkDataDirectory(directory.value)
  const database = Option.isNone(databaseUrl) ? [] : [yield* checkDatabase(databaseUrl.value)]
  return [nodeCheck(process.versions.node), ...remote, ...data, ...database]
})

const colours = { ok: "green", warning: "yellow", failed: "red", skipped: "dim" } as const

const statusWidth = "warning".length

const linesOf = (checks: ReadonlyArray<Check>): ReadonlyArray<string> => {
  const nameWidth = Math.max(...checks.map(({ name }) => name.length))
  const indent = " ".repeat(statusWidth + nameWidth + 4)
  return checks.flatMap(({ detail, name, remedy, status }) => [
    `${out(colours[status], status.padEnd(statusWidth))}  ${name.padEnd(nameWidth)}  ${detail}`,
    ...(remedy === undefined || remedy === ""
      ? []
      : remedy.split("\n").map((line) => `${indent}${out("dim", line)}`))
  ])
}

const countOf = (checks: ReadonlyArray<Check>, wanted: CheckStatus): number =>
  checks.filter(({ status }) => status === wanted).length

const summary = (checks: ReadonlyArray<Check>): string => {
  const [faults, warnings] = [countOf(checks, "failed"), countOf(checks, "warning")]
  if (faults + warnings === 0) return out("green", "All is well.")
  return `${faults} failed, ${warnings} to look at.`
}

export const doctorCommand = Command.make(
  "doctor",
  { env: environmentFlag },
  Effect.fn(function* ({ env }) {
    const checks = yield* allChecks(env)
    const isWell = countOf(checks, "failed") === 0
    yield* printResult({ ok: isWell, checks }, [...linesOf(checks), "", summary(checks)])
    if (!isWell) return yield* new Exit({ exitCode: exitCodes.no })
  })
).pipe(
  Command.withDescription(
    "Check address, keys, config, clock, versions, TURN and this machine; exits with 1 if a check fails"
  ),
  Command.withExamples([
    { command: "svc doctor", description: "The service of this folder, in development" },
    { command: "svc doctor --env production --json", description: "For a monitor" }
  ])
)
