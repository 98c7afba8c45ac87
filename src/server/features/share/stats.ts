/** Counts of share links in a range of UTC days. */
import { DateTime, Effect } from "effect"
import type { EnvironmentId } from "#rpc/ids"
import { http } from "#rpc/limits"
import type { ShareStats } from "#rpc/share/api"
import { share } from "#rpc/share/limits"
import { ShareVisitRepository } from "#sql/share/visits"
import { invalidField } from "#server/platform/invalid-request"
import { dayOf } from "./visits.ts"

interface StatsQuery {
  readonly from?: string
  readonly to?: string
  readonly shareId?: string
  readonly limit?: number
}

/** Returns the day `days` later, or earlier for a negative number. */
const daysLater = (day: string, days: number): string =>
  DateTime.formatIsoDateUtc(DateTime.add(DateTime.makeUnsafe(day), { days }))

/** Returns the days of a range, both ends included. */
export const daysBetween = (from: string, to: string): ReadonlyArray<string> => {
  const days: Array<string> = []
  for (let day = from; day <= to; day = daysLater(day, 1)) days.push(day)
  return days
}

/** Returns the range of a query; by default the last days up to today. */
const rangeOf = Effect.fnUntraced(function* ({ from, to }: StatsQuery, today: string) {
  const last = to ?? today
  const first = from ?? daysLater(last, 1 - share.statsDaysDefault)
  if (first > last) return yield* invalidField("from", "Expected a day that is not after `to`")
  if (first < daysLater(last, 1 - share.statsDaysMax)) {
    return yield* invalidField("from", `Expected a range of at most ${share.statsDaysMax} days`)
  }
  return { from: first, to: last }
})

const none = { visits: 0, newPlayers: 0, plays: 0 }

/** Reads the counts. */
export const makeStats = Effect.gen(function* () {
  const repository = yield* ShareVisitRepository
  return Effect.fn("Share.stats")(function* (environmentId: EnvironmentId, query: StatsQuery) {
    const range = yield* rangeOf(query, dayOf(yield* DateTime.now))
    const wanted = { ...range, environmentId, linkId: query.shareId ?? null }
    const counted = new Map(
      (yield* repository.days(wanted)).map(({ date, ...counts }) => [date, counts])
    )
    const links = yield* repository.links({ ...wanted, limit: query.limit ?? http.pageDefault })
    const days = daysBetween(range.from, range.to).map((date) => ({
      date,
      ...(counted.get(date) ?? none)
    }))
    const totals = days.reduce(
      (sum, { newPlayers, plays, visits }) => ({
        visits: sum.visits + visits,
        newPlayers: sum.newPlayers + newPlayers,
        plays: sum.plays + plays
      }),
      none
    )
    const stats: ShareStats = { ...range, totals, links, days }
    return stats
  })
})
