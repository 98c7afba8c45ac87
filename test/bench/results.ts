/** From the rounds of one load to its figures, ratios and verdict. */
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
}

export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
}

export interface ServerResult {
  readonly name: string
  readonly cpuPerDelivery: Spread
  readonly latencyP99: Spread
  readonly expected: number
  readonly delivered: number
  readonly busyPercent: number
  readonly rounds: ReadonlyArray<Round>
}

export interface LoadResult {
  readonly load: Load
  readonly servers: ReadonlyArray<ServerResult>
  /** CPU per delivery of one server over another's in the same round, keyed `ours/naive`. */
  readonly ratios: Readonly<Record<string, Spread>>
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
/** How much the floor may vary between rounds before the machine counts as too noisy. */
const maxLimitVariation = 0.15

export function summarise(load: Load, measured: ReadonlyArray<Measured>): LoadResult {
  const servers = measured.map(summariseServer)
  return {
    load,
    servers,
    ratios: ratiosOf(measured),
    lost: servers.some(({ rounds }) => rounds.some(({ miscounted }) => miscounted > 0)),
    problems: servers.flatMap(problemsOf)
  }
}

function summariseServer({ name, rounds }: Measured): ServerResult {
  return {
    name,
    cpuPerDelivery: spreadOf(rounds.map((round) => round.cpuPerDelivery)),
    latencyP99: spreadOf(rounds.map((round) => round.latencyP99)),
    expected: rounds.reduce((total, round) => total + round.expected, 0),
    delivered: rounds.reduce((total, round) => total + round.delivered, 0),
    busyPercent: Math.max(...rounds.map((round) => round.busyPercent)),
    rounds
  }
}

/** Ours over every other server, and every other server over the naive one. */
function ratiosOf(measured: ReadonlyArray<Measured>): Record<string, Spread> {
  const pairs = measured.flatMap((a) =>
    measured
      .filter((b) => b !== a && b.name !== "ours" && (a.name === "ours" || b.name === "naive"))
      .map((b) => ({ a, b }))
  )
  return Object.fromEntries(
    pairs.map(({ a, b }) => [
      `${a.name}/${b.name}`,
      spreadOf(a.rounds.map((round, i) => round.cpuPerDelivery / b.rounds[i]!.cpuPerDelivery))
    ])
  )
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
