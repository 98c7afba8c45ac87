/** What a set of measurements comes to. */
import * as Schema from "effect/Schema"

/** The value below which `percent` of the values lie; 0 of none. */
export function percentile(values: ReadonlyArray<number>, percent: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] ?? 0
}

export const median = (values: ReadonlyArray<number>): number => percentile(values, 50)

/** Greatest less smallest, over the median. */
export const variation = (values: ReadonlyArray<number>): number =>
  (Math.max(...values) - Math.min(...values)) / median(values)

export const Quantiles = Schema.Struct({
  p50: Schema.Number,
  p99: Schema.Number,
  max: Schema.Number
})
export type Quantiles = typeof Quantiles.Type

export const quantilesOf = (values: ReadonlyArray<number>): Quantiles => ({
  p50: percentile(values, 50),
  p99: percentile(values, 99),
  max: percentile(values, 100)
})

export interface Line {
  readonly slope: number
  readonly intercept: number
  /** How much of the values' variance the line explains. */
  readonly r2: number
}

type Point = readonly [x: number, y: number]

const mean = (values: ReadonlyArray<number>): number =>
  values.reduce((a, b) => a + b, 0) / values.length

/** Least squares. */
export function fitLine(points: ReadonlyArray<Point>): Line {
  const meanX = mean(points.map(([x]) => x))
  const meanY = mean(points.map(([, y]) => y))
  const sum = (term: (x: number, y: number) => number): number =>
    points.reduce((total, [x, y]) => total + term(x - meanX, y - meanY), 0)
  const slope = sum((x, y) => x * y) / sum((x) => x * x)
  const intercept = meanY - slope * meanX
  const unexplained = points.reduce((total, [x, y]) => total + (y - slope * x - intercept) ** 2, 0)
  return { slope, intercept, r2: 1 - unexplained / sum((_, y) => y * y) }
}

/** The power of x that y grows with. */
export const exponentOf = (points: ReadonlyArray<Point>): number =>
  fitLine(points.map(([x, y]) => [Math.log(x), Math.log(y)] as const)).slope
