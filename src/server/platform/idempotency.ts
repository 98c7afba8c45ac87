/**
 * Requests that are carried out once (spec section 1, rule 5; decisions 3.1.10): for 24 hours a caller
 * that repeats a request under its `Idempotency-Key` gets the first answer, and nothing happens again.
 * The answer is kept in the transaction of the effect, so there is never one without the other; a
 * request that failed changed nothing and may be repeated.
 */
import { Context, DateTime, Effect, Layer, Option, Schema } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import {
  IdempotencyInProgress,
  IdempotencyKeyReused,
  InvalidIdempotencyKey
} from "#rpc/errors/codes"
import type { EnvironmentId } from "#rpc/ids"
import { http, idempotency } from "#rpc/limits"
import { IdempotencyRepository, type StoredResponse } from "#sql/idempotency"
import { sweepHourly } from "./database.ts"
import { sha256 } from "./secrets.ts"

/** Who asks what, under which key. */
export interface KeyedRequest {
  readonly environmentId: EnvironmentId
  /** Whose keys these are: the id of a player, a key or a developer. */
  readonly caller: string
  /** Method and path. */
  readonly path: string
  readonly key: string
  readonly body: unknown
}

type KeyError = InvalidIdempotencyKey | IdempotencyKeyReused | IdempotencyInProgress

const keyForm = new RegExp(`^[A-Za-z0-9_.:-]{1,${http.idempotencyKeyMaxCharacters}}$`)

const oldest = (now: DateTime.Utc) => DateTime.subtract(now, { seconds: idempotency.keptSeconds })

/** Carries requests out once. */
export class Idempotency extends Context.Service<
  Idempotency,
  {
    /**
     * The answer that is kept, or that of the effect. `prepare` may take its time (ask somebody):
     * only the effect that it results in runs within the transaction.
     */
    readonly once: <A, I, E, E2, R, R2>(
      request: KeyedRequest,
      answer: Schema.Codec<A, I>,
      prepare: Effect.Effect<Effect.Effect<A, E2, R2>, E, R>
    ) => Effect.Effect<A, E | E2 | KeyError, R | R2>
  }
>()("server/platform/idempotency/Idempotency") {
  static readonly layer = Layer.effect(
    Idempotency,
    Effect.gen(function* () {
      const rows = yield* IdempotencyRepository
      const sql = yield* SqlClient.SqlClient
      yield* sweepHourly("Idempotency keys", (now) => rows.sweep(oldest(now)))
      return Idempotency.of({ once: makeOnce(rows, sql) })
    })
  )
}

const makeOnce = (
  rows: IdempotencyRepository["Service"],
  sql: SqlClient.SqlClient
): Idempotency["Service"]["once"] =>
  Effect.fnUntraced(function* <A, I, E, E2, R, R2>(
    { body, environmentId, ...named }: KeyedRequest,
    answer: Schema.Codec<A, I>,
    prepare: Effect.Effect<Effect.Effect<A, E2, R2>, E, R>
  ) {
    if (!keyForm.test(named.key)) return yield* new InvalidIdempotencyKey()
    const Answer = Schema.fromJsonString(answer)
    const fingerprint = sha256(JSON.stringify(body))
    const createdAt = yield* DateTime.now
    const find = rows.find({ ...named, since: oldest(createdAt) })
    const replay = Effect.fnUntraced(function* (kept: StoredResponse) {
      if (kept.fingerprint !== fingerprint) return yield* new IdempotencyKeyReused()
      return yield* Effect.orDie(Schema.decodeEffect(Answer)(kept.answer))
    })
    const known = yield* find
    if (Option.isSome(known)) return yield* replay(known.value)
    const effect = yield* prepare
    const carriedOut = Effect.gen(function* () {
      if (!(yield* rows.lock(named))) return yield* new IdempotencyInProgress()
      // Another request may have ended since.
      const kept = yield* find
      if (Option.isSome(kept)) return yield* replay(kept.value)
      const value = yield* effect
      const text = yield* Effect.orDie(Schema.encodeEffect(Answer)(value))
      yield* rows.keep({ ...named, environmentId, fingerprint, answer: text, createdAt })
      return value
    })
    return yield* Effect.catchIf(sql.withTransaction(carriedOut), SqlError.isSqlError, Effect.die)
  })
