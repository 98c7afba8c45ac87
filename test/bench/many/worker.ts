/**
 * A process of load that does what it is asked, one thing after the other. Both ends: `startWorker`
 * in the benchmark, `obey` in the worker.
 */
import { on } from "node:events"
import * as Schema from "effect/Schema"
import { launch, stop } from "../machine/process.ts"

export interface Worker {
  /** Asks for something and waits until it is done, however long that takes. */
  readonly ask: <A>(command: object, answer: Schema.Decoder<A>) => Promise<A>
  readonly stop: () => Promise<void>
}

const Report = Schema.Union([
  Schema.Struct({ ok: Schema.Literal(true), answer: Schema.Unknown }),
  Schema.Struct({ ok: Schema.Literal(false), message: Schema.String })
])
const decodeReport = Schema.decodeUnknownSync(Report)

/** Starts `script` on `core`; `name` labels its failures. */
export function startWorker(name: string, script: string, core: number | undefined): Worker {
  const child = launch({ script, args: [], core })
  const messages = on(child, "message", { close: ["exit"] })
  return {
    ask: async (command, answer) => {
      child.send(command)
      const message = await messages.next()
      if (message.done === true) throw new Error(`${name}: the load process ended early`)
      const report = decodeReport(message.value[0])
      if (!report.ok) throw new Error(`${name}: ${report.message}`)
      return Schema.decodeUnknownSync(answer)(report.answer)
    },
    stop: () => stop(child)
  }
}

const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error)

let lost: Error | undefined

/** Makes the command under way, or the next, fail: a socket was lost that should be open. */
export function fail(error: Error): void {
  lost ??= error
}

/** Answers the benchmark's commands in this process. */
export function obey(handle: (command: unknown) => Promise<object>): void {
  const answer = async (command: unknown): Promise<void> => {
    const report = await handle(command).then(
      (answer) =>
        lost === undefined ? { ok: true, answer } : { ok: false, message: lost.message },
      (error: unknown) => ({ ok: false, message: messageOf(lost ?? error) })
    )
    process.send?.(report)
  }
  process.on("message", (command) => void answer(command))
  process.once("disconnect", () => process.exit())
}
