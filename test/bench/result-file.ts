/** Turns the rounds of one load into figures, ratios and a validity verdict. */
import type { Figures, Load } from "./load/protocol.ts"

export interface Plan {
  readonly rounds: number
  /** Sent once per server and load, before the first round, and thrown away. */
  readonly warmUpMs: number
  /** Sent before each window, so that it opens on a steady state. */
  readonly leadMs: number
  readonly windowMs: number
}

/** One window of one server. */
export interface Round extends Figures {
  /** Microseconds. */
  readonly cpuPerDelivery: number
  /** CPU that neither the server nor the generator used, in percent of one core. */
  readonly othersPercent?: number
}

export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
}

/** CPU per delivery of one server over another's, round by round. */
export interface Ratio extends Spread {
  /** What the median should not exceed. */
  readonly target?: number
}

export interface ServerResult {
  readonly name: string
  readonly cpuPerDelivery: Spread
  readonly latencyP50: Spread
  readonly latencyP99: Spread
  readonly expected: number
  readonly delivered: number
  readonly busyPercent: number
  readonly rounds: ReadonlyArray<Round>
}

export interface LoadResult {
  readonly load: Load
  readonly servers: ReadonlyArray<ServerResult>
  /** Keyed `ours/naive`. */
  readonly ratios: Readonly<Record<string, Ratio>>
  /** Whether any player got more or fewer messages than it was owed. */
  readonly lost: boolean
  /** Why these figures must not be used; empty when they may. */
  readonly problems: ReadonlyArray<string>
}

interface Measured {
  readonly name: string
  readonly rounds: ReadonlyArray<Round>
}

const maxBusyPercent = 85
/** Beyond this the latencies tell of the load generator's core, not of the server. */
const maxLateMicros = 10_000
/** The servers whose turn it is not, their Postgres and the benchmark itself stay well below. */
const maxOthersPercent = 25
/** How much the floor may vary between rounds before the machine counts as too noisy. */
const maxLimitVariation = 0.15

interface Comparison {
  readonly server: string
  readonly over: string
  /** The most that the ratio should come to, by load; `any` is for the loads not named. */
  readonly targets?: Readonly<Record<string, number>>
}

const comparisons: ReadonlyArray<Comparison> = [
  {
    server: "ours",
    over: "colyseus",
    targets: { "20x8x60": 0.5, "20x8x20": 0.7, "2x64x5": 0.7 }
  },
  { server: "ours", over: "socket.io" },
  { server: "ours", over: "naive" },
  { server: "ours", over: "limit" },
  { server: "ours-two", over: "ours", targets: { any: 1.6 } },
  { server: "colyseus", over: "naive" },
  { server: "socket.io", over: "naive" },
  { server: "limit", over: "naive" }
]

export function summarise(load: Load, measured: ReadonlyArray<Measured>): LoadResult {
  const servers = measured.map(summariseServer)
  return {
    load,
    servers,
    ratios: ratiosOf(load, measured),
    lost: servers.some(({ rounds }) => rounds.some(({ miscounted }) => miscounted > 0)),
    problems: servers.flatMap(problemsOf)
  }
}

function summariseServer({ name, rounds }: Measured): ServerResult {
  return {
    name,
    cpuPerDelivery: spreadOf(rounds.map((round) => round.cpuPerDelivery)),
    latencyP50: spreadOf(rounds.map((round) => round.latencyP50)),
    latencyP99: spreadOf(rounds.map((round) => round.latencyP99)),
    expected: rounds.reduce((total, round) => total + round.expected, 0),
    delivered: rounds.reduce((total, round) => total + round.delivered, 0),
    busyPercent: Math.max(...rounds.map((round) => round.busyPercent)),
    rounds
  }
}

function ratiosOf(load: Load, measured: ReadonlyArray<Measured>): Record<string, Ratio> {
  const rounds = new Map(measured.map((server) => [server.name, server.rounds]))
  const pairs = comparisons.flatMap(({ over, server, targets }) => {
    const above = rounds.get(server)
    const below = rounds.get(over)
    if (above === undefined || below === undefined) return []
    const target = targets?.[`${load.rooms}x${load.players}x${load.rate}`] ?? targets?.["any"]
    const spread = spreadOf(
      above.map((round, i) => round.cpuPerDelivery / below[i]!.cpuPerDelivery)
    )
    const ratio: Ratio = target === undefined ? spread : { ...spread, target }
    return [[`${server}/${over}`, ratio] as const]
  })
  return Object.fromEntries(pairs)
}

function problemsOf(server: ServerResult): ReadonlyArray<string> {
  const { busyPercent, cpuPerDelivery, delivered, expected, name, rounds } = server
  const problems: Array<string> = []
  if (rounds.some((round) => round.miscounted > 0)) {
    problems.push(`${name}: delivered ${delivered} of ${expected}`)
  }
  if (busyPercent > maxBusyPercent) {
    problems.push(`${name}: void, the load generator was ${busyPercent.toFixed(0)} % busy`)
  }
  const late = spreadOf(rounds.map((round) => round.lateP99)).median
  if (late > maxLateMicros) {
    problems.push(`${name}: p99 void, sends were ${(late / 1000).toFixed(0)} ms late at p99`)
  }
  const others = spreadOf(rounds.map((round) => round.othersPercent ?? 0)).median
  if (others > maxOthersPercent) {
    problems.push(`${name}: void, other processes took ${others.toFixed(0)} % of a core`)
  }
  const variation = (cpuPerDelivery.max - cpuPerDelivery.min) / cpuPerDelivery.median
  if (name === "limit" && variation > maxLimitVariation) {
    problems.push(`limit varied by ${(variation * 100).toFixed(0)} %: the machine is too noisy`)
  }
  return problems
}

function spreadOf(values: ReadonlyArray<number>): Spread {
  const sorted = values.toSorted((a, b) => a - b)
  const upper = sorted[Math.floor(sorted.length / 2)]
  const lower = sorted[Math.ceil(sorted.length / 2) - 1]
  if (upper === undefined || lower === undefined) throw new Error("no rounds to summarise")
  return { median: (upper + lower) / 2, min: Math.min(...values), max: Math.max(...values) }
}
