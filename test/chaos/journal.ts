/**
 * What the apps under load have seen: when each of them last got something done, what failed meanwhile,
 * and what must never happen.
 */

import { isError } from "#client/client"

/** What an app does over and over. */
export type Kind = "rooms" | "matches" | "channels" | "saves" | "stats"

export const kinds: ReadonlyArray<Kind> = ["rooms", "matches", "channels", "saves", "stats"]

/** Failures of a call that say: not now, try again. */
const passing: ReadonlySet<string> = new Set([
  "network_error",
  "timed_out",
  "disconnected",
  "unavailable",
  "idempotency_in_progress",
  // The app has told already that it lost its room or channel.
  "gone"
])

/** The code of a failure. */
export const codeOf = (error: unknown): string =>
  typeof error === "object" && error !== null && "_tag" in error ? String(error._tag) : "unknown"

/** An answer that is not in the service's own form, such as a load balancer's 502, says that too. */
export const isPassing = (error: unknown): boolean =>
  passing.has(codeOf(error)) || (isError(error, "service_error") && error.code === "unknown")

/** One app's calls that got done, as times of `performance.now()`. */
interface Log {
  readonly kind: Kind
  readonly done: Array<number>
}

/** How long an app was kept waiting by a fault. */
export interface Wait {
  readonly kind: Kind
  /** The longest time without anything done, in milliseconds. */
  readonly silence: number
  /** From the end of the fault to the first thing done. */
  readonly back: number
}

export class Journal {
  /** What must never happen, and has. */
  readonly violations: Array<string> = []
  /** Calls that failed more often in a row than an app makes up for: its user would have noticed. */
  readonly noticed: Array<string> = []
  /** Failed calls by app and code, such as `saves timed_out`, since they were last taken. */
  readonly #failures = new Map<string, number>()
  /** Milliseconds that each turn took, since they were last taken. */
  readonly #times: Array<number> = []
  readonly #logs = new Map<string, Log>()

  /** An app will get things done. */
  expect(kind: Kind, name: string): void {
    this.#logs.set(name, { kind, done: [] })
  }

  /** The app's turn is done, in so many milliseconds. */
  done(name: string, millis: number): void {
    this.#times.push(millis)
    this.#logs.get(name)?.done.push(performance.now())
  }

  failed(kind: Kind, name: string, error: unknown): void {
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

  /** Those that have got nothing done since that time. */
  silentSince(at: number): ReadonlyArray<string> {
    return Array.from(this.#logs)
      .filter(([, { done }]) => (done.at(-1) ?? 0) <= at)
      .map(([name]) => name)
  }

  /** What a fault from `hitAt` to `healedAt` did to every app. Forgets what was before. */
  waits(hitAt: number, healedAt: number): ReadonlyArray<Wait> {
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
