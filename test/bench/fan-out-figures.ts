/** Figures of the fan-out benchmark: what windows come to, when they are void, and what is reached. */
import type { Figures, Shape } from "./wire/protocol.ts"

/** One window of one server. */
export interface Window extends Figures {
  /** Messages that reached a player, a second. */
  readonly perSecond: number
  /** CPU microseconds of the server per delivery. */
  readonly cpuPerDelivery: number
  /** CPU time of the server in the window, in percent of one core. */
  readonly serverPercent: number
  /** CPU that neither the server nor the generator used, in percent of one core. */
  readonly othersPercent: number
}

/** The windows of one server at one load. */
export interface Row {
  readonly server: string
  readonly shape: Shape
  /** What the load is, as the table shows it. */
  readonly load: string
  /** Messages a second of each player. */
  readonly rate: number
  /** Percent of the first server's capacity; none for a fixed rate. */
  readonly share?: number
  readonly windows: ReadonlyArray<Window>
}

export interface Capacity {
  readonly server: string
  readonly shape: Shape
  /** The fastest window in which the server kept up. */
  readonly best: Window
  /** The server was not at its limit: the generator was, or the highest rate that is tried. */
  readonly atLeast: boolean
}

/** What a server that keeps up does: it loses nothing, and p99 stays below this. */
export const keepsUpMicros = 30_000

const maxBusyPercent = 85
/** Two runners share a core, and the generator's sends wake both. */
const maxBusyPercentOfTwo = 70
/** Beyond this the latencies tell of the load generator's core, not of the server. */
const maxLateMicros = 10_000
/** The servers whose turn it is not, their Postgres and the benchmark itself stay well below. */
const maxOthersPercent = 25

export const median = (values: ReadonlyArray<number>): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const upper = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
  const lower = sorted[Math.ceil(sorted.length / 2) - 1] ?? Number.NaN
  return (upper + lower) / 2
}

export const medianOf = (row: Row, figure: (window: Window) => number): number =>
  median(row.windows.map(figure))

/** Whether the generator had time for what it measures. */
export const generatorKeptUp = ({ busyPercent, lateP99 }: Window): boolean =>
  busyPercent <= maxBusyPercent && lateP99 <= maxLateMicros

/** Whether something else ran meanwhile: the window shows that, and not the server. */
export const isDisturbed = ({ busyPercent, lateP99, othersPercent }: Window): boolean =>
  othersPercent > maxOthersPercent || (lateP99 > maxLateMicros && busyPercent <= maxBusyPercent / 2)

export const keptUp = (window: Window): boolean =>
  window.miscounted === 0 && window.latencyP99 < keepsUpMicros

/** Why a row must not be used; nothing if it may. */
export function voidBecause(row: Row): string | undefined {
  const two = row.server.startsWith("ours-two")
  const busy = medianOf(row, (window) => window.busyPercent)
  const server = medianOf(row, (window) => window.serverPercent)
  const others = medianOf(row, (window) => window.othersPercent)
  if (two && server > maxBusyPercentOfTwo) return `both runners on a core ${percent(server)} busy`
  if (busy > (two ? maxBusyPercentOfTwo : maxBusyPercent)) return `generator ${percent(busy)} busy`
  if (medianOf(row, (window) => window.lateP99) > maxLateMicros) return "sends were late"
  if (others > maxOthersPercent) return `other processes took ${percent(others)} of a core`
  return undefined
}

export const percent = (value: number): string => `${value.toFixed(0)} %`
export const millis = (micros: number): string => (micros / 1000).toFixed(1)
export const nameOf = ({ players, rooms }: Shape): string => `${rooms}x${players}`
/** Messages that reach a player when each player sends one. */
export const deliveriesPerRound = ({ players, rooms }: Shape): number =>
  rooms * players * (players - 1)

export const latencyHeader = [
  "load",
  "server",
  "deliveries/s",
  "p50 ms",
  "p99 ms",
  "p99.9 ms",
  "CPU us/delivery",
  "server core",
  "load core",
  "lost",
  "note"
]

export function latencyRow(row: Row): ReadonlyArray<string> {
  const of = (figure: (window: Window) => number) => medianOf(row, figure)
  const lost = row.windows.reduce((sum, { miscounted }) => sum + miscounted, 0)
  const reason = voidBecause(row)
  return [
    row.load,
    row.server,
    of((window) => window.perSecond).toFixed(0),
    millis(of((window) => window.latencyP50)),
    millis(of((window) => window.latencyP99)),
    millis(of((window) => window.latencyP999)),
    of((window) => window.cpuPerDelivery).toFixed(1),
    percent(of((window) => window.serverPercent)),
    percent(of((window) => window.busyPercent)),
    String(lost),
    reason === undefined ? "" : `void: ${reason}`
  ]
}

export const capacityHeader = [
  "rooms",
  "server",
  "deliveries/s",
  "p50 ms",
  "p99 ms",
  "CPU us/delivery",
  "server core",
  "load core"
]

export function capacityRow({ atLeast, best, server, shape }: Capacity): ReadonlyArray<string> {
  return [
    nameOf(shape),
    server,
    `${atLeast ? "at least " : ""}${best.perSecond.toFixed(0)}`,
    millis(best.latencyP50),
    millis(best.latencyP99),
    best.cpuPerDelivery.toFixed(1),
    percent(best.serverPercent),
    percent(best.busyPercent)
  ]
}

interface Reach {
  readonly server: string
  readonly over: string
  /** The most milliseconds that may be added. */
  readonly p50: number
  readonly p99: number
}

/** Up to half of the naive server's capacity. */
const reaches: ReadonlyArray<Reach> = [
  { server: "ours", over: "naive", p50: 1, p99: 3 },
  { server: "ours-two", over: "ours", p50: 1, p99: 5 }
]
const reachedUpTo = 50
const capacityReach = 2

const verdict = (met: boolean): string => (met ? "met" : "missed")

/** What the service adds to the latency of others, load by load. */
export function addedLatencies(rows: ReadonlyArray<Row>): ReadonlyArray<string> {
  return reaches.flatMap(({ over, p50, p99, server }) =>
    rows.flatMap((row) => {
      const other = rows.find(({ load, server: name }) => name === over && load === row.load)
      if (row.server !== server || other === undefined) return []
      if (voidBecause(row) !== undefined || voidBecause(other) !== undefined) return []
      const added = (figure: (window: Window) => number): number =>
        (medianOf(row, figure) - medianOf(other, figure)) / 1000
      const addedP50 = added((window) => window.latencyP50)
      const addedP99 = added((window) => window.latencyP99)
      const text = `${row.load}, ${server} over ${over}: p50 ${signed(addedP50)}, p99 ${signed(addedP99)} ms`
      if ((row.share ?? 0) > reachedUpTo) return [text]
      return [`${text}; ${p50} and ${p99} ${verdict(addedP50 <= p50 && addedP99 <= p99)}`]
    })
  )
}

/** What TLS between two runners costs, load by load. */
export function tlsRatios(rows: ReadonlyArray<Row>): ReadonlyArray<string> {
  const valid = rows.filter((row) => voidBecause(row) === undefined)
  return valid.flatMap((row) => {
    const plain = valid.find(({ load, server }) => server === "ours-two" && load === row.load)
    if (row.server !== "ours-two-tls" || plain === undefined) return []
    const ratio =
      medianOf(row, (window) => window.cpuPerDelivery) /
      medianOf(plain, (window) => window.cpuPerDelivery)
    return [`${row.load}, ours-two-tls over ours-two: CPU per delivery ${ratio.toFixed(2)}`]
  })
}

const signed = (value: number): string => `${value < 0 ? "" : "+"}${value.toFixed(1)}`

/** The service's capacity over that of others. */
export function capacityRatios(capacities: ReadonlyArray<Capacity>): ReadonlyArray<string> {
  return capacities.flatMap((ours) => {
    if (ours.server !== "ours") return []
    return capacities.flatMap(({ atLeast, best, server, shape }) => {
      if (server === "ours" || shape !== ours.shape) return []
      const ratio = ours.best.perSecond / best.perSecond
      const bound = ours.atLeast ? "at least " : atLeast ? "at most " : ""
      const text = `${nameOf(shape)}, capacity of ours over ${server}: ${bound}${ratio.toFixed(2)}`
      if (server !== "naive" && server !== "colyseus") return [text]
      return [`${text}; ${capacityReach} ${verdict(ratio >= capacityReach)}`]
    })
  })
}
