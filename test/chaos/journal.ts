/** Journal of the apps under load: completed steps, failed calls and violations. */

/** The kinds of apps. */
export type AppKind = "rooms" | "matches" | "channels" | "saves" | "stats"

export const appKinds: ReadonlyArray<AppKind> = ["rooms", "matches", "channels", "saves", "stats"]

/** Errors of a call that a retry may cure. */
const passingCodes: ReadonlySet<string> = new Set([
  "network_error",
  "timed_out",
  "disconnected",
  "unavailable",
  "idempotency_in_progress",
  // The app has already reported that its room or channel closed.
  "gone",
  // A response of the load balancer, such as a 502.
  "unreadable_response"
])

/** The code of an error. */
export const codeOf = (error: unknown): string =>
  typeof error === "object" && error !== null && "_tag" in error ? String(error._tag) : "unknown"

/** Whether a retry may cure the error. */
export const isPassing = (error: unknown): boolean => passingCodes.has(codeOf(error))

/** Times of an app's completed steps, by `performance.now()`. */
interface Log {
  readonly kind: AppKind
  readonly done: Array<number>
}

/** How long a fault kept an app waiting. */
export interface Outage {
  readonly kind: AppKind
  /** The longest time without a completed step, in milliseconds. */
  readonly silence: number
  /** From the repair to the first completed step, in milliseconds. */
  readonly back: number
}

export class Journal {
  /** Broken promises of the service. */
  readonly violations: Array<string> = []
  /** Calls that failed more often in a row than an app retries, so its user noticed. */
  readonly noticed: Array<string> = []
  /** Failed calls by app and code, such as `saves timed_out`, since the last read. */
  readonly #failures = new Map<string, number>()
  /** Milliseconds of each step since the last read. */
  readonly #times: Array<number> = []
  readonly #logs = new Map<string, Log>()

  /** Registers an app. */
  expect(kind: AppKind, name: string): void {
    this.#logs.set(name, { kind, done: [] })
  }

  /** Records a completed step and its milliseconds. */
  done(name: string, millis: number): void {
    this.#times.push(millis)
    this.#logs.get(name)?.done.push(performance.now())
  }

  failed(kind: AppKind, name: string, error: unknown): void {
    const failure = `${kind} ${codeOf(error)}`
    this.#failures.set(failure, (this.#failures.get(failure) ?? 0) + 1)
    if (!isPassing(error)) this.violated(`${name} met ${codeOf(error)}: ${String(error)}`)
  }

  violated(what: string): void {
    this.violations.push(what)
  }

  takeFailures(): Readonly<Record<string, number>> {
    const taken = Object.fromEntries(this.#failures)
    this.#failures.clear()
    return taken
  }

  takeTimes(): ReadonlyArray<number> {
    return this.#times.splice(0)
  }

  /** The apps without a completed step since that time. */
  silentSince(at: number): ReadonlyArray<string> {
    return Array.from(this.#logs)
      .filter(([, { done }]) => (done.at(-1) ?? 0) <= at)
      .map(([name]) => name)
  }

  /** The effect of a fault from `hitAt` to `healedAt` on every app. Drops earlier records. */
  waits(hitAt: number, healedAt: number): ReadonlyArray<Outage> {
    return Array.from(this.#logs.values(), ({ done, kind }) => {
      const from = Math.max(
        0,
        done.findLastIndex((at) => at < hitAt)
      )
      const gaps = done.slice(from + 1).map((at, i) => at - (done[from + i] ?? at))
      const back = (done.find((at) => at > healedAt) ?? healedAt) - healedAt
      done.splice(0, done.length - 1)
      return { kind, silence: Math.max(0, ...gaps), back }
    })
  }
}
