/** A failed start, or a refused command, whose reason is already on stderr. */
import { Cause, Console, Data, DateTime, Effect, Exit, Runtime } from "effect"
import { textOf } from "./platform/settings/table.ts"
import { logs, mode } from "./platform/settings/telemetry.ts"

/** The runtime prints no stack trace for it. */
export class StartError extends Data.TaggedError("StartError") {
  override readonly [Runtime.errorReported] = false
}

/** Prints the reason and fails. */
export const failCommand = (reason: string) =>
  Effect.andThen(Console.error(reason), Effect.fail(new StartError()))

/** Whether logs are lines of JSON. It asks the environment: the settings may be what is wrong. */
const isJson = Effect.gen(function* () {
  const format = yield* textOf(logs.format)
  return format === "json" || (format !== "pretty" && (yield* textOf(mode.mode)) === "production")
}).pipe(Effect.orDie)

/** Prints that the service does not start, and why, and fails. Where logs are JSON, it is a line of them. */
export const failStart = Effect.fnUntraced(function* (reason: string) {
  const title = "Failed to start the service."
  if (!(yield* isJson)) return yield* failCommand(`${title}\n${reason}`)
  const time = DateTime.formatIso(yield* DateTime.now)
  return yield* failCommand(
    JSON.stringify({ time, level: "fatal", message: title, detail: [reason] })
  )
})

/** Ends the process with 0 after a stop by a signal, which an orchestrator would count as a failure otherwise. */
export const stopTeardown: Runtime.Teardown = (exit, onExit) =>
  Runtime.defaultTeardown(exit, (code) =>
    onExit(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause) ? 0 : code)
  )
