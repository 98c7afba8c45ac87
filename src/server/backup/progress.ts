/** Progress on a terminal, and failures of files as messages. */
import { Effect } from "effect"
import { BackupError } from "./location.ts"

/** Shows what is under way, on a terminal only. */
export interface Progress {
  (what: string): Effect.Effect<void>
  /** Shows the number of files that were copied. */
  readonly now: (files: number) => void
  readonly clear: Effect.Effect<void>
}

const clearLine = "\r\u001B[2K"

/** Progress on a stream. */
export const makeProgress = (stream: NodeJS.WriteStream): Progress => {
  const print = (text: string): void => {
    if (stream.isTTY) stream.write(text)
  }
  return Object.assign((what: string) => Effect.sync(() => print(`${clearLine}${what}`)), {
    now: (files: number) => print(`${clearLine}${files} files`),
    clear: Effect.sync(() => print(clearLine))
  })
}

/** The failure of work on files as a message. */
export const failureTo = (what: string, cause: unknown) =>
  new BackupError({
    message: `Failed to ${what}: ${cause instanceof Error ? cause.message : String(cause)}`
  })

/** Runs work on files; a failure becomes a message. */
export const failedTo = <A>(what: string, work: () => Promise<A>) =>
  Effect.tryPromise({ try: work, catch: (cause) => failureTo(what, cause) })
