/**
 * Steady load for minutes: neither the live memory of a runner nor the latency of a call may grow.
 *
 *   npm run test:soak -- --minutes 20
 *
 * The first quarter is a warm-up; slopes are of the rest, minute by minute. It fails when a slope
 * exceeds its bound by more than two standard errors, or on a violation.
 */
import { setTimeout as delay } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { NodeServices } from "@effect/platform-node"
import { Array as Arrays, Console, Effect } from "effect"
import { SecureRandom } from "effect/crypto"
import { Journal } from "./journal.ts"
import { config, Load } from "./load.ts"
import { runScript } from "./script.ts"
import { meanOf, type Point, processStats, slopeOf } from "./process-stats.ts"
import { ChaosHarness } from "./chaos-harness.ts"

const { values } = parseArgs({ options: { minutes: { type: "string", default: "20" } } })
const minutes = Number(values.minutes)
if (!(minutes >= 5)) throw new Error(`--minutes ${values.minutes}: want at least 5, for a slope`)

/** Growth allowed in an hour. Code grows because the engine compiles for as long as it runs. */
const bounds = { "MB of data": 1, "MB of code": 10, handles: 6, "p99 ms": 10 } as const
type Measure = keyof typeof bounds

const sampleMillis = 10_000
const reporter = fileURLToPath(new URL("./process-stats-reporter.ts", import.meta.url))
const sizes = { rooms: 6, players: 3, matched: 6, talkers: 4, savers: 4, counters: 4 }

/** Measurements by name, such as `MB of data of runner 1`. */
type Series = Map<string, { readonly measure: Measure; readonly points: Array<Point> }>

const note = (series: Series, name: string, measure: Measure, point: Point): void => {
  const known = series.get(name)
  if (known === undefined) series.set(name, { measure, points: [point] })
  else known.points.push(point)
}

const percentile = (times: ReadonlyArray<number>, share: number): number =>
  times.toSorted((a, b) => a - b)[Math.floor(times.length * share)] ?? 0

const sample = async (harness: ChaosHarness, journal: Journal, series: Series, hours: number) => {
  for (const { index, runner } of harness.places) {
    const { code, data, handles } = await processStats(runner.pid)
    const of = `of runner ${index + 1}`
    note(series, `MB of data ${of}`, "MB of data", { hours, value: data / 1e6 })
    note(series, `MB of code ${of}`, "MB of code", { hours, value: code / 1e6 })
    note(series, `handles ${of}`, "handles", { hours, value: handles })
  }
  note(series, "p99 ms", "p99 ms", { hours, value: percentile(journal.takeTimes(), 0.99) })
}

interface Row {
  readonly line: string
  readonly grows: boolean
}

/** Means of minutes. Single samples rise and fall, since closed rooms are released twice a minute. */
const byMinute = (points: ReadonlyArray<Point>): ReadonlyArray<Point> =>
  Arrays.chunksOf(points, 60_000 / sampleMillis).map(meanOf)

const rowOf = (name: string, measure: Measure, points: ReadonlyArray<Point>): Row => {
  const warm = byMinute(points.slice(Math.floor(points.length / 4)))
  const { error, hourly } = slopeOf(warm)
  const grows = hourly - 2 * error > bounds[measure]
  const first = warm[0]?.value ?? 0
  const last = warm.at(-1)?.value ?? 0
  const cells = [first, last, hourly, error, bounds[measure]].map((value) => value.toFixed(2))
  return { line: [name, ...cells, grows ? "GROWS" : "flat"].join(" | "), grows }
}

const soak = Effect.gen(function* () {
  const journal = new Journal()
  const harness = yield* ChaosHarness.start(3, config, ["--expose-gc", "--import", reporter])
  const options = { sizes, retries: 1, forgetMillis: 0 }
  const load = yield* Load.start(harness.target, journal, options)
  const series: Series = new Map()
  const begun = performance.now()
  const endAt = begun + minutes * 60_000
  while (performance.now() < endAt) {
    yield* Effect.promise(() => delay(sampleMillis))
    const hours = (performance.now() - begun) / 3_600_000
    yield* Effect.promise(() => sample(harness, journal, series, hours))
  }
  yield* Effect.promise(() => load.stop())
  const rows = Array.from(series, ([name, { measure, points }]) => rowOf(name, measure, points))
  const wrong = [...journal.violations, ...journal.noticed]
  const failures = JSON.stringify(journal.takeFailures())
  yield* Console.log(
    [
      "what | first | last | an hour | standard error | bound | ",
      ...rows.map(({ line }) => line),
      `failed calls ${failures}; violations: ${wrong.length}`,
      ...wrong
    ].join("\n")
  )
  const failed = wrong.length > 0 || rows.some(({ grows }) => grows)
  process.exitCode = failed ? 1 : 0
}).pipe(
  Effect.scoped,
  Effect.provide(NodeServices.layer),
  Effect.provide(SecureRandom.layerWebCrypto)
)

runScript(soak)
