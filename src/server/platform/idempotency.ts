/**
 * Idempotent requests: for 24 hours a repeated request with the same `Idempotency-Key` gets the
 * first response, and nothing happens again. The transaction of the effect stores the response, so
 * both commit or neither does. A request that failed has changed nothing, and the client may repeat
 * it.
 */
import { Context, DateTime, Effect, Layer, Option, Schema } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import {
  IdempotencyInProgress,
  IdempotencyKeyReused,
  InvalidIdempotencyKey
} from "#rpc/errors/codes"
import type { EnvironmentId } from "#rpc/ids"
import { secondsPerDay } from "#rpc/units"
import { IdempotencyRepository, type StoredResponse } from "#sql/idempotency"
import { sweepHourly } from "./database.ts"
import { sha256 } from "./secrets.ts"

const idempotencyKeyMaxCharacters = 128
export const idempotencyKeptSeconds = secondsPerDay

/** A request with its `Idempotency-Key`. */
export interface KeyedRequest {
  readonly environmentId: EnvironmentId
  /** Caller, to whom keys are scoped: the id of a player, an API key or a developer. */
  readonly caller: string
  /** Method and path. */
  readonly path: string
  readonly key: string
  readonly body: unknown
}

type KeyError = InvalidIdempotencyKey | IdempotencyKeyReused | IdempotencyInProgress

const keyForm = new RegExp(`^[A-Za-z0-9_.:-]{1,${idempotencyKeyMaxCharacters}}$`)

/** Fails unless the text is an `Idempotency-Key`. */
export const checkKey = (key: string): Effect.Effect<void, InvalidIdempotencyKey> =>
  keyForm.test(key) ? Effect.void : Effect.fail(new InvalidIdempotencyKey())

const oldest = (now: DateTime.Utc) => DateTime.subtract(now, { seconds: idempotencyKeptSeconds })

/** Runs requests at most once. */
export class Idempotency extends Context.Service<
  Idempotency,
  {
    /**
     * Returns the stored response, or that of the effect. `prepare` may be slow (call a webhook): only
     * the effect that it returns runs within the transaction.
     */
    readonly once: <A, I, E, E2, R, R2>(
      request: KeyedRequest,
      response: Schema.Codec<A, I>,
      prepare: Effect.Effect<Effect.Effect<A, E2, R2>, E, R>
    ) => Effect.Effect<A, E | E2 | KeyError, R | R2>
  }
>()("server/platform/idempotency/Idempotency") {
  static readonly layer = Layer.effect(
    Idempotency,
    Effect.gen(function* () {
      const repository = yield* IdempotencyRepository
      const sql = yield* SqlClient.SqlClient
      yield* sweepHourly("Idempotency keys", (now) => repository.sweep(oldest(now)))
      return Idempotency.of({ once: makeOnce(repository, sql) })
    })
  )
}

const makeOnce = (
  repository: IdempotencyRepository["Service"],
  sql: SqlClient.SqlClient
): Idempotency["Service"]["once"] =>
  Effect.fnUntraced(function* <A, I, E, E2, R, R2>(
    { body, environmentId, ...named }: KeyedRequest,
    response: Schema.Codec<A, I>,
    prepare: Effect.Effect<Effect.Effect<A, E2, R2>, E, R>
  ) {
    yield* checkKey(named.key)
    const ResponseText = Schema.fromJsonString(response)
    const fingerprint = sha256(JSON.stringify(body))
    const createdAt = yield* DateTime.now
    const find = repository.find({ ...named, since: oldest(createdAt) })
    const replay = Effect.fnUntraced(function* (stored: StoredResponse) {
      if (stored.fingerprint !== fingerprint) return yield* new IdempotencyKeyReused()
      return yield* Effect.orDie(Schema.decodeEffect(ResponseText)(stored.response))
    })
    const known = yield* find
    if (Option.isSome(known)) return yield* replay(known.value)
    const effect = yield* prepare
    const attempt = Effect.gen(function* () {
      if (!(yield* repository.lock(named))) return yield* new IdempotencyInProgress()
      // Another request may have committed since the first look-up.
      const stored = yield* find
      if (Option.isSome(stored)) return yield* replay(stored.value)
      const value = yield* effect
      const text = yield* Effect.orDie(Schema.encodeEffect(ResponseText)(value))
      yield* repository.store({ ...named, environmentId, fingerprint, response: text, createdAt })
      return value
    })
    return yield* Effect.catchIf(sql.withTransaction(attempt), SqlError.isSqlError, Effect.die)
  })
