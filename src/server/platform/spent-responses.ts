/**
 * Requests that spend a secret, and can be repeated with the same `Idempotency-Key` for ten minutes. The
 * transaction that spends the secret stores what the response needs, sealed, so a crash loses neither or
 * both. A repeat makes the response again from that. So it gives nothing that has ended meanwhile.
 *
 * The stored response is found by the secret and the key together. A copied secret without its key is
 * spent, as without a stored response.
 */
import { createHmac } from "node:crypto"
import { Context, DateTime, Duration, Effect, Layer, Option, Queue, Schema } from "effect"
import { IdempotencyKeyReused, InvalidIdempotencyKey } from "#rpc/errors/codes"
import type { EnvironmentId, PlayerId } from "#rpc/ids"
import { repeatKeyForm, spentResponses } from "#rpc/spent-secrets"
import { SpentResponseRepository } from "#sql/spent-responses"
import { sweepHourly } from "./database.ts"
import { Secrets, sha256 } from "./secrets.ts"

const { keyMaxCharacters, keyMinCharacters } = spentResponses

const keyForm = new RegExp(`^[A-Za-z0-9_.:-]{${keyMinCharacters},${keyMaxCharacters}}$`)

/** Fails unless the text may be a key of at least 128 random bits. */
export const checkRepeatKey = (
  key: string | undefined
): Effect.Effect<void, InvalidIdempotencyKey> =>
  key === undefined || keyForm.test(key)
    ? Effect.void
    : Effect.fail(
        new InvalidIdempotencyKey({ message: `An Idempotency-Key here is ${repeatKeyForm}.` })
      )

/** A request that spends a secret. */
export interface SpendingRequest {
  /** The environment, or the developers, for whom the bounds count together. */
  readonly tenant: EnvironmentId | "developers"
  /** Method and path. */
  readonly path: string
  readonly secret: string
  readonly body: unknown
  /** The `Idempotency-Key`; undefined: the request cannot be repeated. */
  readonly key: string | undefined
}

/** Stores what a repeat needs, and the player whose deletion removes it. */
export type Keep<A> = (value: A, playerId?: PlayerId) => Effect.Effect<void>

/** Both ways to a response. */
interface Resolution<K, A, E, R, E2, R2> {
  /** Spends the secret. It calls `keep` within the transaction that does so. */
  readonly spend: (keep: Keep<K>) => Effect.Effect<A, E, R>
  /** Makes the response again. It fails if what the response gave has ended. */
  readonly repeat: (kept: K) => Effect.Effect<A, E2, R2>
}

export type RepeatError = InvalidIdempotencyKey | IdempotencyKeyReused

/** Answers requests that spend a secret. */
export class SpentResponses extends Context.Service<
  SpentResponses,
  {
    readonly once: <K, I, A, E, R, E2, R2>(
      request: SpendingRequest,
      kept: Schema.Codec<K, I>,
      ways: Resolution<K, A, E, R, E2, R2>
    ) => Effect.Effect<A, E | E2 | RepeatError, R | R2>
  }
>()("server/platform/spent-responses/SpentResponses") {
  static readonly layer = Layer.effect(
    SpentResponses,
    Effect.gen(function* () {
      const repository = yield* SpentResponseRepository
      const secrets = yield* Secrets
      const stored = yield* sweepAfterStoring(repository)
      return SpentResponses.of({ once: makeOnce(repository, secrets, stored) })
    })
  )
}

const what = "Responses to spent secrets"

/**
 * Deletes responses within a minute after they expire, and returns what to run when one is stored: a
 * service that stores none does not look. Those of a service that ended are deleted within an hour.
 */
const sweepAfterStoring = Effect.fnUntraced(function* (
  repository: SpentResponseRepository["Service"]
) {
  const wake = yield* Queue.sliding<void>(1)
  const sweep = Effect.flatMap(DateTime.now, repository.sweep).pipe(
    Effect.tapDefect((defect) => Effect.logWarning(`Failed to sweep: ${what}`, defect)),
    Effect.exit
  )
  const minutes = Math.ceil(spentResponses.keptSeconds / 60)
  yield* Queue.take(wake).pipe(
    Effect.andThen(Effect.repeat(Effect.delay(sweep, Duration.minutes(1)), { times: minutes })),
    Effect.forever,
    Effect.forkScoped
  )
  yield* sweepHourly(what, repository.sweep)
  return Effect.asVoid(Queue.offer(wake, undefined))
})

const makeOnce = (
  repository: SpentResponseRepository["Service"],
  secrets: Secrets["Service"],
  stored: Effect.Effect<void>
): SpentResponses["Service"]["once"] =>
  Effect.fnUntraced(function* <K, I, A, E, R, E2, R2>(
    { body, key, path, secret, tenant }: SpendingRequest,
    kept: Schema.Codec<K, I>,
    { repeat, spend }: Resolution<K, A, E, R, E2, R2>
  ) {
    if (key === undefined) return yield* spend(() => Effect.void)
    yield* checkRepeatKey(key)
    const text = Schema.fromJsonString(kept)
    const hash = sha256(JSON.stringify([path, tenant, secret, key]))
    // Keyed, because a body may hold a password.
    const fingerprint = createHmac("sha256", key).update(JSON.stringify(body)).digest("base64url")
    const purpose = `spent answer ${hash}`

    const keep: Keep<K> = Effect.fnUntraced(function* (value, playerId) {
      const plain = yield* Effect.orDie(Schema.encodeEffect(text)(value))
      const sealed = yield* secrets.seal(plain, purpose)
      const expiresAt = DateTime.add(yield* DateTime.now, { seconds: spentResponses.keptSeconds })
      const owner = { tenant, playerId: playerId ?? null }
      const row = { ...owner, hash, fingerprint, sealed, expiresAt }
      yield* repository.insert({ ...row, max: spentResponses.maxPerTenant })
      yield* stored
    })

    /** The stored response, made again; none if there is none. */
    const repeated = Effect.gen(function* () {
      const found = Option.getOrUndefined(
        yield* repository.find({ hash, now: yield* DateTime.now })
      )
      if (found === undefined) return Option.none<A>()
      if (found.fingerprint !== fingerprint) return yield* new IdempotencyKeyReused()
      const plain = yield* Effect.orDie(secrets.open(found.sealed, purpose))
      return Option.some(yield* repeat(yield* Effect.orDie(Schema.decodeEffect(text)(plain))))
    })

    const known = yield* repeated
    if (Option.isSome(known)) return known.value
    return yield* spend(keep).pipe(
      Effect.catch((error) =>
        // The same request at the same time may have spent the secret since the first look.
        Effect.flatMap(repeated, (late) =>
          Option.isSome(late) ? Effect.succeed(late.value) : Effect.fail(error)
        )
      )
    )
  })
