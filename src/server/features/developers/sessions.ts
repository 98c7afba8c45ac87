/**
 * Developers' sessions (spec section 5, decisions 3.13.1): a `kds_` token of 256 random bits, kept as
 * its hash. It lasts 30 days from its last use, so that a dashboard in use never signs out.
 */
import { Context, DateTime, Duration, Effect, Layer, Option } from "effect"
import { SecureRandom } from "effect/crypto"
import type { DeveloperCaller } from "#rpc/auth"
import { Unauthorized } from "#rpc/errors/codes"
import { type DeveloperId, type DeveloperSessionId, newId } from "#rpc/ids"
import { developers as limits } from "#rpc/limits"
import { DeveloperRepository } from "#sql/developers"
import { sweepDaily } from "#server/platform/database"
import { randomSecret, sha256 } from "#server/platform/secrets"

const tokenForm = /^kds_[A-Za-z0-9_-]{43}$/

const life = Duration.seconds(limits.sessionSeconds)

/** A session's end moves at most this often: a dashboard asks more than once. */
const slideEvery = Duration.hours(1)

/** A session as its developer gets it, once. */
export interface CreatedSession {
  readonly token: string
  readonly expiresAt: DateTime.Utc
}

const unauthorized = new Unauthorized({ message: "A valid developer session (kds_) is needed." })

export class DeveloperSessions extends Context.Service<
  DeveloperSessions,
  {
    readonly create: (developerId: DeveloperId) => Effect.Effect<CreatedSession>
    /** The developer of a token; `unauthorized` when it is none, unknown, ended or expired. */
    readonly verify: (token: string) => Effect.Effect<DeveloperCaller, Unauthorized>
    readonly end: (session: DeveloperSessionId) => Effect.Effect<void>
  }
>()("server/features/developers/sessions/DeveloperSessions") {
  static readonly layer = Layer.effect(
    DeveloperSessions,
    Effect.gen(function* () {
      const rows = yield* DeveloperRepository
      const random = yield* SecureRandom.SecureRandom
      yield* sweepDaily("Developers' sessions", rows.sweepSessions)
      return DeveloperSessions.of({
        end: rows.endSession,
        create: Effect.fn("DeveloperSessions.open")(
          function* (developerId: DeveloperId) {
            const token = `kds_${yield* randomSecret}`
            const id = yield* newId.developerSession
            const createdAt = yield* DateTime.now
            const expiresAt = DateTime.addDuration(createdAt, life)
            const tokenHash = sha256(token)
            yield* rows.insertSession({ id, developerId, tokenHash, createdAt, expiresAt })
            return { token, expiresAt }
          },
          Effect.provideService(SecureRandom.SecureRandom, random)
        ),
        verify: Effect.fn("DeveloperSessions.verify")(function* (token) {
          if (!tokenForm.test(token)) return yield* unauthorized
          const now = yield* DateTime.now
          const found = yield* rows.openSession({ tokenHash: sha256(token), now })
          if (Option.isNone(found)) return yield* unauthorized
          const { expiresAt, ...developer } = found.value
          const next = DateTime.addDuration(now, life)
          if (Duration.isGreaterThan(DateTime.distance(expiresAt, next), slideEvery)) {
            yield* rows.extendSession({ sessionId: developer.sessionId, expiresAt: next })
          }
          return developer
        })
      })
    })
  )
}
