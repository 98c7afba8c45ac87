/**
 * How functions and their processes end calls, apart from faults of the service. A function can break its
 * calls at will, so its own log, which is limited, gets a line for each, and the service's log does not.
 */
import { Data } from "effect"
import type { Call, EndReason, Supervised } from "#server/platform/workerd/supervisor"

/** Error: the call ended without a response. */
export class CallEnded extends Data.TaggedError("CallEnded")<{
  readonly reason: EndReason | "late" | keyof typeof brokenMessages
}> {}

/** Error: the process did not take a call for one of the service. */
export class CallRefused extends Error {
  constructor() {
    super("The process did not take a call for the service's own.")
  }
}

/** Error: the runtime has answered a call itself, since the function gave no response that it could send. */
export class NoResponse extends Error {}

/** What clients and the function's log read about a call that the function has ended itself. */
export const brokenMessages = {
  broken: "The function closed the connection of the call without a whole response.",
  malformed: "The response of the function is not valid HTTP.",
  noResponse: "The function returned no valid response: its logs may say why."
} as const

/** Codes of a connection that the process has closed, or no longer accepts. */
const closed = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "ENOENT",
  "EPIPE",
  "ERR_STREAM_PREMATURE_CLOSE"
])

/** Returns how a call has failed at its process, by Node's code. Those of its parser begin with `HPE_`. */
const failureOf = (error: unknown): keyof typeof brokenMessages | undefined => {
  if (error instanceof NoResponse) return "noResponse"
  if (!(error instanceof Error && "code" in error)) return undefined
  const code = String(error.code)
  if (code.startsWith("HPE_")) return "malformed"
  return closed.has(code) ? "broken" : undefined
}

/** Milliseconds in which the end of a process shows after the end of its connections. */
const exitMillis = 1000

const exitOf = async ({ exited }: Supervised): Promise<void> => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, exitMillis)
  await Promise.race([exited, promise])
  clearTimeout(timer)
}

/** Milliseconds between two faults of an environment in the service's log. */
const faultMillis = 60_000

/** Failures of the calls of one environment. */
export class CallFailures {
  readonly #now: () => number
  readonly #note: (message: string) => void
  #faultAt = -Infinity
  #omitted = 0

  constructor(now: () => number, note: (message: string) => void) {
    this.#now = now
    this.#note = note
  }

  /** Returns the end that the function or its process gave a call; any other error as it is. */
  async endOf(call: Call<Supervised>, error: unknown): Promise<unknown> {
    const failure = failureOf(error)
    if (failure === "broken" && call.endedBy === undefined) await exitOf(call.process)
    const reason = call.endedBy ?? failure
    if (reason === undefined) return error
    if (reason === failure) {
      const cause = failure === "malformed" && error instanceof Error ? ` ${error.message}` : ""
      this.#note(brokenMessages[failure] + cause)
    }
    return new CallEnded({ reason })
  }

  /** Returns a fault of the service for its log; undefined for those that follow within a minute. */
  fault(error: unknown): unknown {
    const at = this.#now()
    if (at - this.#faultAt < faultMillis) {
      this.#omitted += 1
      return undefined
    }
    const omitted = this.#omitted
    this.#faultAt = at
    this.#omitted = 0
    if (omitted === 0) return error
    return new Error(`${omitted} faults before this one were not logged.`, { cause: error })
  }
}
