/**
 * A rolling upgrade under load: replaces one runner after the other. The new runner is ready before the
 * old one gets SIGTERM, as in a deployment with `maxUnavailable: 0`.
 */
import { setTimeout as delay } from "node:timers/promises"
import { Effect } from "effect"
import { Journal } from "./journal.ts"
import { config, Load, type Sizes } from "./load.ts"
import { ChaosHarness } from "./chaos-harness.ts"

export interface UpgradeOutcome {
  /** Milliseconds from SIGTERM to exit, by old runner. */
  readonly stopped: ReadonlyArray<number>
  /** The longest wait of any app, in milliseconds. */
  readonly worst: number
  readonly violations: ReadonlyArray<string>
  /** Calls that failed twice in a row. */
  readonly noticed: ReadonlyArray<string>
  /** The longest wait of this process for a core, in milliseconds. */
  readonly starved: number
}

const timerMillis = 20
const settleMillis = 5000

/** Measures how late timers fire. */
const watchStarvation = Effect.acquireRelease(
  Effect.sync(() => {
    const delays = { worst: 0 }
    let before = performance.now()
    const timer = setInterval(() => {
      const now = performance.now()
      delays.worst = Math.max(delays.worst, now - before - timerMillis)
      before = now
    }, timerMillis)
    return { delays, timer }
  }),
  ({ timer }) => Effect.sync(() => clearInterval(timer))
)

/** Replaces every runner; a lost granted change is a violation. */
export const rollingUpgrade = Effect.fnUntraced(function* (
  sizes: Sizes,
  say: (line: string) => void
) {
  const journal = new Journal()
  const world = yield* ChaosHarness.start(3, config)
  const options = { sizes, retries: 1, forgetMillis: 0 }
  const load = yield* Load.start(world.target, journal, options)
  yield* Effect.promise(() => load.agree())
  const { delays } = yield* watchStarvation
  const begun = performance.now()
  const stopped: Array<number> = []
  const runners = Array.from(world.places)
  for (const old of runners) {
    yield* world.join
    // `minReadySeconds` of the manifests: shards move to the new runner meanwhile.
    yield* Effect.promise(() => delay(settleMillis))
    const termAt = performance.now()
    yield* world.leave(old)
    const stopMillis = Math.round(performance.now() - termAt)
    stopped.push(stopMillis)
    yield* Effect.promise(() => load.allDone(performance.now()))
    yield* Effect.promise(() => load.agree())
    const failures = JSON.stringify(journal.takeFailures())
    say(`runner ${old.index + 1} stopped after ${stopMillis} ms; failed calls ${failures}`)
  }
  const waits = journal.waits(begun, begun)
  yield* Effect.promise(() => load.stop())
  const upgrade: UpgradeOutcome = {
    stopped,
    worst: Math.round(Math.max(...waits.map(({ silence }) => silence))),
    violations: [...journal.violations],
    noticed: [...journal.noticed],
    starved: Math.round(delays.worst)
  }
  return upgrade
})
