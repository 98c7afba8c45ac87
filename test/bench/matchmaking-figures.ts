/** Turns the runs of the matchmaking benchmark into tables, ratios and validity problems. */
import { median, variation } from "./many/figures.ts"
import type { Matched } from "./many/matchmaking-worker.ts"
import { queueLengths, type Scaling } from "./matchmaking-scaling.ts"

export interface Run extends Matched {
  readonly perSecond: number
  /** Microseconds of the server's CPU. */
  readonly cpuPerTicket: number
}

interface Runs {
  readonly name: string
  readonly runs: ReadonlyArray<Run>
}

/** Our figure over that of Colyseus, median of the rounds; below 1 is better. */
interface Ratio {
  readonly cpu: number
  readonly p99: number
}

export interface Measured {
  /** Players per second, or null for the highest rate that the server sustained. */
  readonly rate: number | null
  readonly servers: ReadonlyArray<Runs>
  readonly ratios: Readonly<Record<string, Ratio>>
}

const maxBusyPercent = 85
const maxLateMillis = 10
const maxNoise = 0.15
const maxExponent = 0.1
const floor = "colyseus"

/** Ratios to Colyseus in the same round, per round. */
export function ratiosOf(servers: ReadonlyArray<Runs>): Record<string, Ratio> {
  const below = servers.find(({ name }) => name === floor)?.runs ?? []
  const pairs = servers.flatMap(({ name, runs }) => {
    if (name === floor || below.length === 0) return []
    const ratio = (figure: (run: Run) => number): number =>
      median(below.map((run, i) => (runs[i] === undefined ? 0 : figure(runs[i]) / figure(run))))
    const both = { cpu: ratio((run) => run.cpuPerTicket), p99: ratio((run) => run.wait.p99) }
    return [[`${name} / ${floor}`, both] as const]
  })
  return Object.fromEntries(pairs)
}

export const matchmakingHeader = [
  "server",
  "tickets/s",
  "CPU us/ticket",
  "wait p50 ms",
  "wait p99 ms",
  "room full p50 ms",
  "room full p99 ms",
  "rooms not full",
  "load core busy"
]

export const matchmakingRows = ({ servers }: Measured): ReadonlyArray<ReadonlyArray<string>> =>
  servers.map(({ name, runs }) => {
    const middle = (figure: (run: Run) => number, digits = 0): string =>
      median(runs.map(figure)).toFixed(digits)
    return [
      name,
      middle((run) => run.perSecond),
      middle((run) => run.cpuPerTicket),
      middle((run) => run.wait.p50, 1),
      middle((run) => run.wait.p99, 1),
      middle((run) => run.full.p50, 1),
      middle((run) => run.full.p99, 1),
      String(Math.max(...runs.map((run) => run.notFull))),
      `${Math.max(...runs.map((run) => run.busyPercent)).toFixed(0)} %`
    ]
  })

export function matchmakingProblems(measured: ReadonlyArray<Measured>): Array<string> {
  return measured.flatMap(({ rate, servers }) =>
    servers.flatMap(({ name, runs }) => {
      const at = rate === null ? `${name}, burst` : `${name}, ${rate} a second`
      const problems: Array<string> = []
      const busy = Math.max(...runs.map(({ busyPercent }) => busyPercent))
      if (busy > maxBusyPercent)
        problems.push(`${at}: void, the load was ${busy.toFixed(0)} % busy`)
      const late = median(runs.map(({ lateP99 }) => lateP99))
      if (late > maxLateMillis) {
        problems.push(`${at}: p99 void, players asked ${late.toFixed(0)} ms late at p99`)
      }
      const noise = variation(runs.map(({ cpuPerTicket }) => cpuPerTicket))
      if (name === floor && noise > maxNoise) {
        problems.push(`${at}: varied by ${(noise * 100).toFixed(0)} %, the machine is too noisy`)
      }
      const notFull = Math.max(...runs.map((run) => run.notFull))
      if (name !== floor && notFull > 0) problems.push(`${at}: ${notFull} rooms are not of four`)
      return problems
    })
  )
}

export const scalingHeader = [
  "what",
  ...queueLengths.map((length) => length.toLocaleString("en")),
  "exponent",
  "over the bare Map's"
]

export const scalingRows = (scaling: ReadonlyArray<Scaling>): ReadonlyArray<Array<string>> =>
  scaling.map(({ exponent, exponentOverFloor, nanos, what }) => [
    what,
    ...queueLengths.map((length) => (nanos[length] ?? 0).toFixed(0)),
    exponent.toFixed(2),
    exponentOverFloor.toFixed(2)
  ])

export const scalingProblems = (scaling: ReadonlyArray<Scaling>): ReadonlyArray<string> =>
  scaling
    .filter(({ exponentOverFloor }) => exponentOverFloor > maxExponent)
    .map(
      ({ exponentOverFloor, what }) =>
        `${what}: grows with the queue, exponent ${exponentOverFloor.toFixed(2)} over the floor's`
    )
