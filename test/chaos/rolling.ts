/**
 * A rolling upgrade under load: replaces one runner after the other. The new runner is ready before the
 * old one gets SIGTERM, as in a deployment with `maxUnavailable: 0`.
 */
import { setTimeout as delay } from "node:timers/promises"
import { Effect, Schema } from "effect"
import { ChaosHarness, type RunnerSlot } from "./chaos-harness.ts"
import { Journal } from "./journal.ts"
import { config, Load, type Sizes } from "./load.ts"
import { checkSeats } from "./run.ts"

/** A release of the service. */
export interface Release {
  readonly name: string
  /** The file that starts it; undefined for this release. */
  readonly main: string | undefined
}

export interface UpgradePlan {
  readonly sizes: Sizes
  /** How many runners there are. */
  readonly size: number
  /** The release to begin with, and those that replace one another. */
  readonly releases: readonly [Release, ...ReadonlyArray<Release>]
  readonly say: (line: string) => void
}

/** What the runners of a release hold. */
interface Holding {
  readonly release: string
  readonly rooms: number
  readonly sockets: number
}

/** A moment in which two releases run side by side. */
export interface SideBySide {
  readonly from: string
  readonly to: string
  readonly holdings: ReadonlyArray<Holding>
}

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
  readonly mixed: ReadonlyArray<SideBySide>
}

const timerMillis = 20
const settleMillis = 5000
/** Which runner gets a room and its sockets is a matter of chance: so many rooms miss none. */
const roomsMax = 24

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

const Rooms = Schema.Array(Schema.Struct({ node: Schema.String, rooms: Schema.Int }))

/** The open sockets of players on a runner, by its metrics. */
const socketsOf = async ({ runner }: RunnerSlot): Promise<number> => {
  const response = await fetch(`${runner.url}/metrics`)
  const line = /^svc_sockets\{[^}]*kind="player"[^}]*\} (\d+)/m.exec(await response.text())
  return Number(line?.[1] ?? 0)
}

const holdingsOf = Effect.fnUntraced(function* (
  harness: ChaosHarness,
  runners: ReadonlyMap<RunnerSlot, string>
) {
  const rows = yield* Effect.flatMap(
    harness.query("select node, count(*)::int as rooms from rooms group by node"),
    Schema.decodeUnknownEffect(Rooms)
  )
  const rooms = new Map(rows.map((row) => [row.node, row.rooms]))
  const each = yield* Effect.forEach(runners, ([slot, release]) =>
    Effect.map(
      Effect.promise(() => socketsOf(slot)),
      (sockets): Holding => ({ release, sockets, rooms: rooms.get(slot.runner.node) ?? 0 })
    )
  )
  return Array.from(
    Map.groupBy(each, ({ release }) => release),
    ([release, held]): Holding => ({
      release,
      rooms: held.reduce((sum, holding) => sum + holding.rooms, 0),
      sockets: held.reduce((sum, holding) => sum + holding.sockets, 0)
    })
  )
})

/** Opens rooms until both releases hold rooms and sockets, at most `roomsMax`. */
const sharedHoldings = Effect.fnUntraced(function* (
  harness: ChaosHarness,
  runners: ReadonlyMap<RunnerSlot, string>,
  load: Load
) {
  let holdings = yield* holdingsOf(harness, runners)
  for (let opened = 0; opened < roomsMax; opened += 1) {
    if (holdings.every(({ rooms, sockets }) => rooms > 0 && sockets > 0)) break
    yield* Effect.promise(() => load.openRoom())
    holdings = yield* holdingsOf(harness, runners)
  }
  return holdings
})

/** Replaces every runner by each release in turn; a lost granted change is a violation. */
export const rollingUpgrade = Effect.fnUntraced(function* (plan: UpgradePlan) {
  const { releases, say, size, sizes } = plan
  const [first, ...others] = releases
  const journal = new Journal()
  const harness = yield* ChaosHarness.start(size, config, [], first.main)
  const options = { sizes, retries: 1, forgetMillis: 0 }
  const load = yield* Load.start(harness.target, journal, options)
  yield* Effect.promise(() => load.agree())
  const { delays } = yield* watchStarvation
  const begun = performance.now()
  const stopped: Array<number> = []
  const mixed: Array<SideBySide> = []
  const runners = new Map(harness.places.map((slot) => [slot, first.name]))
  for (const { main, name } of others) {
    for (const [old, from] of Array.from(runners)) {
      runners.set(yield* harness.join(main), name)
      // `minReadySeconds` of the manifests: shards move to the new runner meanwhile.
      yield* Effect.promise(() => delay(settleMillis))
      yield* Effect.promise(() => load.agree())
      if (from !== name) {
        mixed.push({ from, to: name, holdings: yield* sharedHoldings(harness, runners, load) })
      }
      const termAt = performance.now()
      yield* harness.leave(old)
      runners.delete(old)
      const stopMillis = Math.round(performance.now() - termAt)
      stopped.push(stopMillis)
      yield* Effect.promise(() => load.allDone(performance.now()))
      yield* Effect.promise(() => load.agree())
      yield* checkSeats(harness, journal)
      const failures = JSON.stringify(journal.takeFailures())
      say(`${from} to ${name}: stopped after ${stopMillis} ms; failed calls ${failures}`)
    }
  }
  const waits = journal.waits(begun, begun)
  yield* Effect.promise(() => load.stop())
  const upgrade: UpgradeOutcome = {
    stopped,
    worst: Math.round(Math.max(...waits.map(({ silence }) => silence))),
    violations: [...journal.violations],
    noticed: [...journal.noticed],
    starved: Math.round(delays.worst),
    mixed
  }
  return upgrade
})
