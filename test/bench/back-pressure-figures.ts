/** Turns the windows of the back-pressure benchmark into rows, ratios and validity problems. */
import type { Offence, Window } from "./many/back-pressure-worker.ts"
import { median, variation } from "./many/figures.ts"

export interface Measured extends Window {
  readonly offence: Offence
  /** Bytes: the peak of the window minus the live bytes before it. */
  readonly rssGrowth: number
}

const maxBusyPercent = 85
const maxLateMillis = 10
const maxFloorVariation = 0.15
const closeCodes: Readonly<Record<Offence, number>> = {
  none: 0,
  "stops reading": 1013,
  floods: 4029
}

const of = (windows: ReadonlyArray<Measured>, offence: Offence): ReadonlyArray<Measured> =>
  windows.filter((window) => window.offence === offence)

/** Median ratio of the p99 of a window with an offender to that of the window before it, without one. */
export function ratiosOf(windows: ReadonlyArray<Measured>): Record<string, number> {
  const pairs = windows.flatMap((window, i) => {
    const before = windows[i - 1]
    return window.offence === "none" || before === undefined
      ? []
      : [{ offence: window.offence, ratio: window.p99 / before.p99 }]
  })
  const byOffence = Map.groupBy(pairs, ({ offence }) => offence)
  return Object.fromEntries(
    Array.from(byOffence, ([offence, ratios]) => [offence, median(ratios.map((r) => r.ratio))])
  )
}

export const backPressureHeader = [
  "one member",
  "others' p50 ms",
  "others' p99 ms",
  "others' max ms",
  "lost",
  "RSS growth MB",
  "closed with",
  "after s",
  "read kB",
  "warnings",
  "load core busy"
]

export function backPressureRow(
  offence: Offence,
  all: ReadonlyArray<Measured>
): ReadonlyArray<string> {
  const windows = of(all, offence)
  const closed = windows.flatMap((window) => window.closed)
  const middle = (figure: (window: Measured) => number): string =>
    median(windows.map(figure)).toFixed(1)
  const end = (figure: (end: (typeof closed)[number]) => number, digits: number): string =>
    closed.length === 0 ? "" : median(closed.map(figure)).toFixed(digits)
  return [
    offence === "none" ? "behaves" : offence,
    middle((window) => window.p50),
    middle((window) => window.p99),
    middle((window) => window.max),
    String(windows.reduce((total, { miscounted }) => total + miscounted, 0)),
    middle((window) => window.rssGrowth / 1_000_000),
    Array.from(new Set(closed.map(({ code }) => code))).join(", "),
    end(({ afterSeconds }) => afterSeconds, 2),
    end(({ bytes }) => bytes / 1000, 0),
    end(({ warnings }) => warnings, 0),
    `${Math.max(...windows.map(({ busyPercent }) => busyPercent)).toFixed(0)} %`
  ]
}

export function backPressureProblems(windows: ReadonlyArray<Measured>): Array<string> {
  const problems = windows.flatMap(({ busyPercent, closed, lateP99, miscounted, offence }) => {
    const found: Array<string> = []
    if (miscounted > 0) found.push(`${offence}: the others miss ${miscounted} messages`)
    if (busyPercent > maxBusyPercent) {
      found.push(`${offence}: void, the load was ${busyPercent.toFixed(0)} % busy`)
    }
    if (lateP99 > maxLateMillis) {
      found.push(`${offence}: p99 void, sends were ${lateP99.toFixed(0)} ms late at p99`)
    }
    const wrong = closed.find(({ code }) => code !== closeCodes[offence])
    if (wrong !== undefined) found.push(`${offence}: closed with ${wrong.code}`)
    return found
  })
  const noise = variation(of(windows, "none").map(({ p99 }) => p99))
  if (noise > maxFloorVariation) {
    problems.push(`p99 without offender varied by ${(noise * 100).toFixed(0)} %: too noisy`)
  }
  return problems
}
