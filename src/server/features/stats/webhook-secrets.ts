/**
 * Signing secrets of the stats webhook, one per environment. The first use creates a secret. The
 * database stores it encrypted, and each node caches it. A rotation takes effect on all nodes within a
 * second.
 */
import { Cache, Context, DateTime, Effect, Layer, Option, Schema } from "effect"
import { SecureRandom } from "effect/crypto"
import { SqlClient } from "effect/sql"
import { EnvironmentId } from "#rpc/ids"
import { WebhookSecretRepository } from "#sql/stats"
import { Invalidation } from "#server/platform/invalidation"
import { makeValueCache } from "#server/platform/value-cache"
import { randomSecret, Secrets } from "#server/platform/secrets"

const prefix = "whsec_"

const isEnvironmentId = Schema.is(EnvironmentId)

/** Bounds how long a node uses a stale secret after a lost invalidation message. */
const cacheTtl = "60 seconds"

const purposeOf = (environmentId: EnvironmentId) => `webhook secret ${environmentId}`

/** Reads and rotates webhook secrets. */
export class WebhookSecrets extends Context.Service<
  WebhookSecrets,
  {
    readonly current: (environmentId: EnvironmentId) => Effect.Effect<string>
    /** Replaces the secret. The previous secret signs no further request. */
    readonly rotate: (environmentId: EnvironmentId) => Effect.Effect<string>
  }
>()("server/features/stats/webhook-secrets/WebhookSecrets") {
  static readonly layer = Layer.effect(
    WebhookSecrets,
    Effect.gen(function* () {
      const repository = yield* WebhookSecretRepository
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
        const found = yield* repository.find(environmentId)
        if (Option.isNone(found)) return Option.none<string>()
        const open = secrets.open(found.value.sealed, purposeOf(environmentId))
        return Option.some(yield* Effect.orDie(open))
      })
      const lookup = Effect.fnUntraced(function* (environmentId: EnvironmentId) {
        const stored = yield* find(environmentId)
        if (Option.isSome(stored)) return stored.value
        const { row, secret } = yield* make(environmentId)
        yield* repository.insert(row)
        // Another node may have inserted its secret first.
        return Option.getOrElse(yield* find(environmentId), () => secret)
      })
      const cached = yield* makeValueCache({
        capacity: 1000,
        timeToLive: cacheTtl,
        lookup
      })
      // A rotation is published as a config change of the environment.
      yield* invalidation.subscribe(({ id, kind }) => {
        if (kind === "everything") return Cache.invalidateAll(cached)
        return kind === "config" && isEnvironmentId(id) ? Cache.invalidate(cached, id) : Effect.void
      })
      return WebhookSecrets.of({
        current: (environmentId) => Cache.get(cached, environmentId),
        rotate: Effect.fn("WebhookSecrets.rotate")(function* (environmentId) {
          const { row, secret } = yield* make(environmentId)
          yield* repository.replace(row)
          yield* sql.afterCommit(Cache.invalidate(cached, environmentId))
          yield* invalidation.publish({ kind: "config", id: environmentId })
          return secret
        })
      })
    })
  )
}
