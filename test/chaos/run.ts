/**
 * A chaos run: injects one fault after the other under load. After each, every app must recover by
 * itself, and no acknowledged change may be missing.
 */
import { Effect, Random } from "effect"
import { type Fault, type FaultName, faults, sleepMillis } from "./faults.ts"
import { Journal, type AppKind, appKinds, type Outage } from "./journal.ts"
import { config, duelSeconds, Load, type LoadOptions } from "./load.ts"
import { type RunnerSlot, ChaosHarness } from "./chaos-harness.ts"

export interface RunOptions extends LoadOptions {
  readonly seed: number
  readonly short: boolean
  readonly faults: ReadonlyArray<FaultName>
  readonly say: (line: string) => void
  /** Called at the end with the output of every runner. */
  readonly logs?: (printed: ReadonlyArray<string>) => void
}

/** The effect of a fault on the apps of a kind, in milliseconds. */
interface Row {
  readonly fault: string
  readonly kind: AppKind
  readonly silence: { readonly median: number; readonly worst: number }
  readonly back: { readonly median: number; readonly worst: number }
}

export interface Outcome {
  readonly seed: number
  readonly rows: ReadonlyArray<Row>
  readonly violations: ReadonlyArray<string>
}

const middleAndWorst = (values: ReadonlyArray<number>) => {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (index: number) => Math.round(sorted[index] ?? 0)
  return { median: at(Math.floor(sorted.length / 2)), worst: at(sorted.length - 1) }
}

const rowsOf = (fault: string, waits: ReadonlyArray<Outage>): ReadonlyArray<Row> =>
  appKinds.map((kind) => {
    const own = waits.filter((wait) => wait.kind === kind)
    return {
      fault,
      kind,
      silence: middleAndWorst(own.map(({ silence }) => silence)),
      back: middleAndWorst(own.map(({ back }) => back))
    }
  })

/** Players with seats in several rooms now. A player who moves may have two for a moment. */
const doubleSeats = Effect.fnUntraced(function* (harness: ChaosHarness) {
  const rows = yield* harness.query(
    `select player || ' in ' || string_agg(id, ' and ' order by id) as seats
       from rooms, unnest(members) player group by player having count(*) > 1`
  )
  return rows.map((row: Readonly<Record<string, unknown>>) => String(row["seats"]))
})

/** How long a player may have two seats: an unused seat ends with its grace period. */
const seatMillis = duelSeconds * 1000 + 3000
const lookMillis = 250

export const checkSeats = Effect.fnUntraced(function* (harness: ChaosHarness, journal: Journal) {
  const until = performance.now() + seatMillis
  let double = yield* doubleSeats(harness)
  while (double.length > 0 && performance.now() < until) {
    yield* sleepMillis(lookMillis)
    const still = new Set(yield* doubleSeats(harness))
    double = double.filter((seats) => still.has(seats))
  }
  for (const seats of double) journal.violated(`seats in two rooms: ${seats}`)
})

const strike = Effect.fnUntraced(function* (
  { gone, hit, millis: [full, short] }: Fault,
  victim: RunnerSlot,
  other: RunnerSlot,
  harness: ChaosHarness,
  load: Load,
  journal: Journal,
  options: RunOptions
) {
  const hitAt = performance.now()
  const mend = yield* hit(harness, victim, other)
  yield* sleepMillis(options.short ? short : full)
  yield* mend
  const healedAt = performance.now()
  yield* Effect.promise(() => load.allDone(healedAt))
  yield* Effect.promise(() => load.agree())
  const waits = journal.waits(hitAt, healedAt)
  yield* checkSeats(harness, journal)
  if (gone === true) yield* harness.replace(victim)
  return waits
})

/** Runs the faults on three runners. */
export const chaos = Effect.fnUntraced(
  function* (options: RunOptions) {
    const { say, seed } = options
    const journal = new Journal()
    const harness = yield* ChaosHarness.start(3, config)
    const load = yield* Load.start(harness.target, journal, options)
    yield* Effect.promise(() => load.agree())
    const waits = new Map<FaultName, Array<Outage>>()
    for (const name of options.faults) {
      const [victim, other] = yield* Random.shuffle(harness.places)
      if (victim === undefined || other === undefined) return yield* Effect.die("no runners")
      const fault: Fault = faults[name]
      const known = journal.violations.length
      const struck = yield* strike(fault, victim, other, harness, load, journal, options)
      waits.set(name, [...(waits.get(name) ?? []), ...struck])
      const worst = Math.round(Math.max(...struck.map(({ silence }) => silence)))
      say(
        `${fault.title}, runner ${victim.index + 1}: everybody back, ${worst} ms at worst; ` +
          `failed calls ${JSON.stringify(journal.takeFailures())}`
      )
      for (const what of journal.violations.slice(known)) say(`  VIOLATION: ${what}`)
    }
    yield* Effect.promise(() => load.stop())
    options.logs?.(harness.outputs.map((output) => output()))
    const outcome: Outcome = {
      seed,
      rows: Array.from(waits).flatMap(([name, each]) => rowsOf(faults[name].title, each)),
      violations: [...journal.violations]
    }
    return outcome
  },
  (effect, { seed }) => Random.withSeed(effect, seed)
)
