/** Months in UTC, by which usage is counted and charged: `YYYY-MM`. */
import { DateTime } from "effect"
import { secondsPerHour } from "#rpc/units"

/** Time from the end of a month to its charge, in which all nodes store their counts. */
const closingSeconds = secondsPerHour

const monthCharacters = 7

/** The month of a time. */
export const periodOf = (time: DateTime.Utc): string =>
  DateTime.formatIsoDateUtc(time).slice(0, monthCharacters)

/** The oldest month that is still counted: a month is, until a while after its end. */
export const oldestOpen = (now: DateTime.Utc): string =>
  periodOf(DateTime.subtract(now, { seconds: closingSeconds }))
