/**
 * Aggregation periods of stats: the day, the ISO week and the month of a time zone. The first local
 * date identifies a period, so hours that daylight saving skips or repeats have no effect.
 */
import { DateTime } from "effect"

/** First days of the periods that contain a moment, as ISO dates. */
export interface Periods {
  readonly day: string
  /** First day of the week, a Monday. */
  readonly week: string
  readonly month: string
}

/** Returns the periods of a moment in Unix milliseconds. `zone` is an IANA name. */
export const periodsAt = (zone: string, millis: number): Periods => {
  const day = DateTime.formatIsoDate(DateTime.makeZonedUnsafe(millis, { timeZone: zone }))
  const date = DateTime.makeUnsafe(day)
  // Sunday is 0, and an ISO week ends with it.
  const sinceMonday = (DateTime.getPartUtc(date, "weekDay") + 6) % 7
  return {
    day,
    week: DateTime.formatIsoDateUtc(DateTime.subtract(date, { days: sinceMonday })),
    month: `${day.slice(0, -2)}01`
  }
}

const minuteMillis = 60_000

/** Caches {@link periodsAt} per zone and minute: no zone changes its date within a minute. */
export const makePeriods = (): ((zone: string, millis: number) => Periods) => {
  const cache = new Map<string, { readonly minute: number; readonly periods: Periods }>()
  return (zone, millis) => {
    const minute = Math.floor(millis / minuteMillis)
    const last = cache.get(zone)
    if (last?.minute === minute) return last.periods
    const periods = periodsAt(zone, millis)
    cache.set(zone, { minute, periods })
    return periods
  }
}
