/** The rate limit that an endpoint for operators declares beside those of all endpoints. */
import { Context, Effect } from "effect"
import type { HttpApiEndpoint } from "effect/http-api"
import { CallerRate } from "#rpc/auth"
import type { EnvironmentId } from "#rpc/ids"
import { takeToken } from "#server/platform/throttle-guard"
import type { Throttles } from "#server/platform/throttles"

/** Takes a token of the key, or one of the environment, which all callers without a key share. */
export const takeCallerRate = (
  throttles: Throttles["Service"],
  { annotations }: HttpApiEndpoint.Top,
  environmentId: EnvironmentId,
  keyId: string | undefined
) => {
  const rate = Context.get(annotations, CallerRate)
  if (rate === undefined) return Effect.void
  const caller = rate.per === "key" ? keyId : undefined
  return takeToken(throttles, rate, `${rate.name}:${caller ?? environmentId}`)
}
