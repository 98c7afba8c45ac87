/**
 * A rolling upgrade: under load, one runner after the other is replaced. The new one is ready before the
 * old one gets SIGTERM, as a deployment with `maxUnavailable: 0` does it.
 */
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
}

/** Replaces every runner; a call that fails twice in a row is a violation, and so is a lost change. */
export const rollingUpgrade = Effect.fnUntraced(function* (
  sizes: Sizes,
  say: (line: string) => void
) {
  const journal = new Journal()
  const world = yield* World.start(3, config)
  const options = { sizes, retries: 1, forgetMillis: 0 }
  const load = yield* Load.start(world.target, journal, options)
  yield* Effect.promise(() => load.agree())
  const begun = performance.now()
  const stopped: Array<number> = []
  const runners = Array.from(world.places)
  for (const old of runners) {
    yield* world.join
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
    violations: [...journal.violations]
  }
  return upgrade
})
