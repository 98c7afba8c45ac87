/** Turns the measurements of one server into its row and its validity problems. */
import { type Line, median, variation } from "./many/figures.ts"
import type { Memory } from "./many/memory.ts"

/** As it stood, and after a full garbage collection. */
export interface Remembered {
  readonly now: Memory
  readonly alive: Memory
}

/** The growth to `count` connections. */
export interface Step {
  readonly count: number
  readonly perSecond: number
  /** Microseconds of the server's CPU. */
  readonly cpuPerConnect: number
  readonly busyPercent: number
  readonly memory: Remembered
}

export interface ServerFigures {
  readonly name: string
  readonly count: number
  readonly base: Remembered
  readonly steps: ReadonlyArray<Step>
  readonly idlePercent: number
  readonly seated: Remembered
  readonly gone: Remembered
  /** Live bytes against the number of connections. */
  readonly lines: { readonly rss: Line; readonly heap: Line }
}

const maxBusyPercent = 85
const minR2 = 0.99
const maxFloorVariation = 0.15
export const maxLeft = 0.1

export const connectionsHeader = [
  "server",
  "RSS kB each",
  "heap kB each",
  "R2",
  "intercept MB",
  "in rooms kB each",
  "heap left",
  "RSS left",
  "connects/s",
  "CPU us/connect",
  "CPU idle",
  "load core busy"
]

const kB = (bytes: number): string => (bytes / 1000).toFixed(1)
const busiest = ({ steps }: ServerFigures): number =>
  Math.max(...steps.map(({ busyPercent }) => busyPercent))

/** The share of memory that remains after all connections closed. */
export const leftOf = (
  { base, gone, seated }: Pick<ServerFigures, "base" | "gone" | "seated">,
  part: "rss" | "heapUsed"
): number => (gone.alive[part] - base.alive[part]) / (seated.alive[part] - base.alive[part])

export function connectionsRow(figures: ServerFigures): ReadonlyArray<string> {
  const { base, count, idlePercent, lines, name, seated, steps } = figures
  return [
    name,
    kB(lines.rss.slope),
    kB(lines.heap.slope),
    lines.rss.r2.toFixed(4),
    (lines.rss.intercept / 1_000_000).toFixed(0),
    kB((seated.alive.rss - base.alive.rss) / count),
    `${(leftOf(figures, "heapUsed") * 100).toFixed(0)} %`,
    `${(leftOf(figures, "rss") * 100).toFixed(0)} %`,
    median(steps.map(({ perSecond }) => perSecond)).toFixed(0),
    median(steps.map(({ cpuPerConnect }) => cpuPerConnect)).toFixed(0),
    `${idlePercent.toFixed(1)} %`,
    `${busiest(figures).toFixed(0)} %`
  ]
}

export function connectionsProblems(results: ReadonlyArray<ServerFigures>): Array<string> {
  return results.flatMap((figures) => {
    const { lines, name, steps } = figures
    const problems: Array<string> = []
    if (lines.rss.r2 < minR2) {
      problems.push(`${name}: memory is no line of the connections, R2 ${lines.rss.r2.toFixed(3)}`)
    }
    if (busiest(figures) > maxBusyPercent) {
      problems.push(`${name}: connects/s void, the load was ${busiest(figures).toFixed(0)} % busy`)
    }
    const left = leftOf(figures, "heapUsed")
    if (name === "ours" && left > maxLeft) {
      problems.push(`ours: ${(left * 100).toFixed(0)} % of what connections took is still there`)
    }
    // The first step warms the server up.
    const noise = variation(steps.slice(1).map(({ cpuPerConnect }) => cpuPerConnect))
    if (name === "naive" && noise > maxFloorVariation) {
      problems.push(`naive varied by ${(noise * 100).toFixed(0)} %: the machine is too noisy`)
    }
    return problems
  })
}
