/**
 * A rolling upgrade: under load, one runner after the other is replaced. The new one is ready before the
 * old one gets SIGTERM, as a deployment with `maxUnavailable: 0` does it.
 */
import { setTimeout as delay } from "node:timers/promises"
import { Effect } from "effect"
import { Journal } from "./journal.ts"
import { config, Load, type Sizes } from "./load.ts"
import { World } from "./world.ts"

export interface Upgrade {
  /** Of each old runner, in milliseconds: from SIGTERM to its end. */
  readonly stopped: ReadonlyArray<number>
  /** The longest that any app was kept waiting, in milliseconds. */
  readonly worst: number
  readonly violations: ReadonlyArray<string>
  /** Calls that failed twice in a row. */
  readonly noticed: ReadonlyArray<string>
  /** The longest that this process itself had to wait for a core, in milliseconds. */
  readonly starved: number
}

const lookMillis = 20
const settleMillis = 5000

/** Notes how late timers are. */
const watchCores = Effect.acquireRelease(
  Effect.sync(() => {
    const seen = { worst: 0 }
    let before = performance.now()
    const looking = setInterval(() => {
      const now = performance.now()
      seen.worst = Math.max(seen.worst, now - before - lookMillis)
      before = now
    }, lookMillis)
    return { seen, looking }
  }),
  ({ looking }) => Effect.sync(() => clearInterval(looking))
)

/** Replaces every runner; a granted change that is forgotten is a violation. */
export const rollingUpgrade = Effect.fnUntraced(function* (
  sizes: Sizes,
  say: (line: string) => void
) {
  const journal = new Journal()
  const world = yield* World.start(3, config)
  const options = { sizes, retries: 1, forgetMillis: 0 }
  const load = yield* Load.start(world.target, journal, options)
  yield* Effect.promise(() => load.agree())
  const { seen } = yield* watchCores
  const begun = performance.now()
  const stopped: Array<number> = []
  const runners = Array.from(world.places)
  for (const old of runners) {
    yield* world.join
    // As long as the manifests wait (`minReadySeconds`): shards move to the new one meanwhile.
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
  const upgrade: Upgrade = {
    stopped,
    worst: Math.round(Math.max(...waits.map(({ silence }) => silence))),
    violations: [...journal.violations],
    noticed: [...journal.noticed],
    starved: Math.round(seen.worst)
  }
  return upgrade
})
