/**
 * Storage quota of environments. A node sums the saves of an environment at most every ten seconds, and
 * adds what it writes itself. So all nodes together can exceed the quota between two sums, and a save
 * updates no shared row. `sql/saves.ts` keeps the quota of guests exactly.
 */
import { Cache, Effect, Exit, Option } from "effect"
import type { EnvironmentId } from "#rpc/ids"
import { SaveRepository } from "#sql/saves"
import { Settings } from "#server/platform/settings/settings"

/** Maximum age of a node's sum over the saves of an environment. */
const environmentSumSeconds = 10

/** Sums of the saves of environments, as this node knows them. */
export const makeEnvironmentQuota = Effect.gen(function* () {
  const repository = yield* SaveRepository
  const { environmentBytes, maxBytes } = (yield* Settings).saves
  const sums = yield* Cache.makeWith(
    (environmentId: EnvironmentId) =>
      Effect.map(repository.bytesOfEnvironment(environmentId), (bytes) => ({ bytes })),
    {
      capacity: 10_000,
      timeToLive: Exit.match({
        onSuccess: () => `${environmentSumSeconds} seconds` as const,
        onFailure: () => 0
      })
    }
  )
  return {
    /**
     * Returns the bytes in use, and the bytes left for a save to grow. Null means enough for any save.
     */
    usageOf: (environmentId: EnvironmentId) =>
      Effect.map(Cache.get(sums, environmentId), ({ bytes }) => {
        const bytesLeft = environmentBytes - bytes
        return { used: bytes, bytesLeft: bytesLeft >= maxBytes ? null : bytesLeft }
      }),
    /** Adds the growth of a written or deleted save to the sum, if a sum exists. */
    add: (environmentId: EnvironmentId, growth: number) =>
      Effect.map(Cache.getSuccess(sums, environmentId), (found) => {
        if (Option.isSome(found)) found.value.bytes += growth
      })
  }
})

export type EnvironmentQuota = Effect.Success<typeof makeEnvironmentQuota>
