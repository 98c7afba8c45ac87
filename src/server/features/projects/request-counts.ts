/** Request counts of an environment over time: by minute for an hour, and by hour for a day. */
import { DateTime, Effect } from "effect"
import type { EnvironmentId } from "#rpc/ids"
import type { RequestCount } from "#rpc/projects/environment"
import { RequestCountRepository, type RequestsCounted } from "#sql/projects/requests"
import { requestCounts } from "#server/platform/request-counts"

/** Returns one count for each of the latest units, this one last. A unit without requests has zeros. */
const fill = (
  now: DateTime.Utc,
  unit: "minute" | "hour",
  length: number,
  counted: ReadonlyArray<RequestsCounted>
): ReadonlyArray<RequestCount> => {
  const latest = DateTime.startOf(now, unit)
  const known = new Map(counted.map((count) => [DateTime.toEpochMillis(count.start), count]))
  return Array.from({ length }, (_, index) => {
    const start = DateTime.subtract(latest, { [`${unit}s`]: length - 1 - index })
    const { clientErrors, requests, serverErrors } = known.get(DateTime.toEpochMillis(start)) ?? {
      requests: 0,
      clientErrors: 0,
      serverErrors: 0
    }
    return { start: DateTime.formatIso(start), requests, clientErrors, serverErrors }
  })
}

/** Reads the request counts of an environment over time. */
export const requestHistory = Effect.map(RequestCountRepository, (repository) =>
  Effect.fnUntraced(function* (environmentId: EnvironmentId) {
    const now = yield* DateTime.now
    const { hours, minutes } = requestCounts
    const since = (unit: "minute" | "hour", length: number) => ({
      environmentId,
      since: DateTime.subtract(DateTime.startOf(now, unit), { [`${unit}s`]: length - 1 })
    })
    return {
      minutes: fill(now, "minute", minutes, yield* repository.minutes(since("minute", minutes))),
      hours: fill(now, "hour", hours, yield* repository.hours(since("hour", hours)))
    }
  })
)
