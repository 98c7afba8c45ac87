/**
 * The secrets that sign the stats webhook (spec sections 4.8 and 5, decisions 3.4.7): one for each
 * environment, made when it is first needed, stored sealed, kept in memory by the nodes that use it.
 * A rotation is in force on every node within a second.
 */
import { Cache, Context, DateTime, Effect, Layer, Option, Schema } from "effect"
import { SecureRandom } from "effect/crypto"
import { SqlClient } from "effect/sql"
import { EnvironmentId } from "#rpc/ids"
import { caches } from "#rpc/limits"
import { WebhookSecretRepository } from "#sql/stats"
import { Invalidation } from "#server/platform/invalidation"
import { randomSecret, Secrets } from "#server/platform/secrets"

const prefix = "whsec_"

const isEnvironmentId = Schema.is(EnvironmentId)

/** The second line of defence behind the invalidation: nothing is believed for longer. */
const trust = "60 seconds"

const purposeOf = (environmentId: EnvironmentId) => `webhook secret ${environmentId}`

/** The webhook secrets of all environments. */
export class WebhookSecrets extends Context.Service<
  WebhookSecrets,
  {
    readonly current: (environmentId: EnvironmentId) => Effect.Effect<string>
    /** A new secret; the one before it signs nothing from now on. */
    readonly rotate: (environmentId: EnvironmentId) => Effect.Effect<string>
  }
>()("server/features/stats/webhook-secrets/WebhookSecrets") {
  static readonly layer = Layer.effect(
    WebhookSecrets,
    Effect.gen(function* () {
      const rows = yield* WebhookSecretRepository
      const secrets = yield* Secrets
      const invalidation = yield* Invalidation
      const random = yield* SecureRandom.SecureRandom
      const sql = yield* SqlClient.SqlClient
      const make = Effect.fnUntraced(
        function* (environmentId: EnvironmentId) {
          const secret = `${prefix}${yield* randomSecret}`
          const sealed = yield* secrets.seal(secret, purposeOf(environmentId))
          return { secret, row: { environmentId, sealed, createdAt: yield* DateTime.now } }
        },
        Effect.provideService(SecureRandom.SecureRandom, random)
      )
      const find = Effect.fnUntraced(function* (environmentId: EnvironmentId) {
        const found = yield* rows.find(environmentId)
        if (Option.isNone(found)) return Option.none<string>()
        const open = secrets.open(found.value.sealed, purposeOf(environmentId))
        return Option.some(yield* Effect.orDie(open))
      })
      const lookup = Effect.fnUntraced(function* (environmentId: EnvironmentId) {
        const known = yield* find(environmentId)
        if (Option.isSome(known)) return known.value
        const { row, secret } = yield* make(environmentId)
        yield* rows.insert(row)
        // Another node may have been faster.
        return Option.getOrElse(yield* find(environmentId), () => secret)
      })
      const cached = yield* Cache.make({ capacity: caches.environments, timeToLive: trust, lookup })
      // A rotation is told as a change of the environment's config, which this is a part of.
      yield* invalidation.subscribe(({ id, kind }) => {
        if (kind === "everything") return Cache.invalidateAll(cached)
        return kind === "config" && isEnvironmentId(id) ? Cache.invalidate(cached, id) : Effect.void
      })
      return WebhookSecrets.of({
        current: (environmentId) => Cache.get(cached, environmentId),
        rotate: Effect.fn("WebhookSecrets.rotate")(function* (environmentId) {
          const { row, secret } = yield* make(environmentId)
          yield* rows.replace(row)
          yield* sql.afterCommit(Cache.invalidate(cached, environmentId))
          yield* invalidation.publish({ kind: "config", id: environmentId })
          return secret
        })
      })
    })
  )
}
