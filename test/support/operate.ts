/** Acts of the operator, as `svc operator` runs them in a process of their own. */
import { NodeServices } from "@effect/platform-node"
import { ConfigProvider, Console, Effect, Exit, Layer, Stdio } from "effect"
import { program } from "#server/operator/program"

/** Runs an act on the real clock; returns what it prints, or `failed: ` with its message. */
export const operate = (databaseUrl: string, ...words: ReadonlyArray<string>) => {
  const printed: Array<string> = []
  const failed: Array<string> = []
  const write =
    (lines: Array<string>) =>
    (...parts: ReadonlyArray<unknown>) =>
      void lines.push(parts.map(String).join(" "))
  const own: Console.Console = { ...console, log: write(printed), error: write(failed) }
  const env = { DATABASE_URL: databaseUrl }
  const act = program.pipe(
    Effect.provide(
      Stdio.layerTest({ args: Effect.succeed(words) }).pipe(Layer.provideMerge(NodeServices.layer))
    ),
    Effect.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env }))),
    Effect.provideService(Console.Console, own)
  )
  return Effect.map(
    Effect.promise(() => Effect.runPromiseExit(act)),
    (exit) =>
      Exit.isSuccess(exit)
        ? printed.join("\n").trim()
        : `failed: ${failed.join("\n") || String(exit.cause)}`
  )
}
