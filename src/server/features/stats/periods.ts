/**
 * The periods that stats are counted in (decisions 3.4.4): the day, the ISO week and the month of a
 * time zone. A period is named by its first local day, so the hours that a zone skips or repeats are
 * of no consequence: what counts is the date on the wall.
 */
import { DateTime } from "effect"

/** The first days of the periods that a moment is in, as ISO dates. */
export interface Periods {
  readonly day: string
  /** A Monday. */
  readonly week: string
  readonly month: string
}

/** The periods of a moment, in Unix milliseconds. `zone` is an IANA name. */
export const periodsAt = (zone: string, millis: number): Periods => {
  const day = DateTime.formatIsoDate(DateTime.makeZonedUnsafe(millis, { timeZone: zone }))
  const date = DateTime.makeUnsafe(day)
  // Sunday is 0, and the last of its week.
  const sinceMonday = (DateTime.getPartUtc(date, "weekDay") + 6) % 7
  return {
    day,
    week: DateTime.formatIsoDateUtc(DateTime.subtract(date, { days: sinceMonday })),
    month: `${day.slice(0, -2)}01`
  }
}

const minuteMillis = 60_000

/** {@link periodsAt} with a memory: no zone changes its date within a minute. */
export const makePeriods = (): ((zone: string, millis: number) => Periods) => {
  const known = new Map<string, { readonly minute: number; readonly periods: Periods }>()
  return (zone, millis) => {
    const minute = Math.floor(millis / minuteMillis)
    const last = known.get(zone)
    if (last?.minute === minute) return last.periods
    const periods = periodsAt(zone, millis)
    known.set(zone, { minute, periods })
    return periods
  }
}
