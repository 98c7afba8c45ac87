/**
 * Developer sessions. A session is a `kds_` token of 256 random bits, stored as its SHA-256 hash. It
 * expires 30 days after its last use, so a dashboard in use stays signed in, but at most 180 days after
 * the sign-in.
 */
import { Context, DateTime, Duration, Effect, Layer, Option } from "effect"
import { SecureRandom } from "effect/crypto"
import type { DeveloperCaller } from "#rpc/auth"
import { Unauthorized } from "#rpc/errors/codes"
import { type DeveloperId, type DeveloperSessionId, newId } from "#rpc/ids"
import { secondsPerDay } from "#rpc/units"
import { DeveloperRepository } from "#sql/developers/repository"
import { sweepDaily } from "#server/platform/database"
import { randomSecret, sha256 } from "#server/platform/secrets"

export const developerSessions = {
  /** Lifetime of a session after its last use. */
  sessionSeconds: 30 * secondsPerDay,
  /** Lifetime of a session after the sign-in, however often it is used. */
  sessionSecondsMax: 180 * secondsPerDay
} as const

const tokenPattern = /^kds_[A-Za-z0-9_-]{43}$/

const lifetime = Duration.seconds(developerSessions.sessionSeconds)

const longest = Duration.seconds(developerSessions.sessionSecondsMax)

/** Minimum interval between two extensions, because a dashboard sends many requests. */
const extendInterval = Duration.hours(1)

/** New session. Only this value has the plain token. */
export interface CreatedSession {
  readonly token: string
  readonly expiresAt: DateTime.Utc
}

/** Error for a token that is missing, unknown or expired. */
export const unauthorized = new Unauthorized({
  message: "The developer session is missing or has expired. Sign in for a new kds_ token."
})

/** Creates, verifies and ends developer sessions. */
export class DeveloperSessions extends Context.Service<
  DeveloperSessions,
  {
    readonly create: (developerId: DeveloperId) => Effect.Effect<CreatedSession>
    /** Returns the developer of a token; fails with `unauthorized` for any other text. */
    readonly verify: (token: string) => Effect.Effect<DeveloperCaller, Unauthorized>
    readonly end: (session: DeveloperSessionId) => Effect.Effect<void>
  }
>()("server/features/developers/sessions/DeveloperSessions") {
  static readonly layer = Layer.effect(
    DeveloperSessions,
    Effect.gen(function* () {
      const repository = yield* DeveloperRepository
      const random = yield* SecureRandom.SecureRandom
      yield* sweepDaily("Developers' sessions", repository.sweepSessions)
      return DeveloperSessions.of({
        end: repository.endSession,
        create: Effect.fn("DeveloperSessions.create")(
          function* (developerId: DeveloperId) {
            const token = `kds_${yield* randomSecret}`
            const id = yield* newId.developerSession
            const createdAt = yield* DateTime.now
            const expiresAt = DateTime.addDuration(createdAt, lifetime)
            const tokenHash = sha256(token)
            yield* repository.insertSession({ id, developerId, tokenHash, createdAt, expiresAt })
            return { token, expiresAt }
          },
          Effect.provideService(SecureRandom.SecureRandom, random)
        ),
        verify: Effect.fn("DeveloperSessions.verify")(function* (token) {
          if (!tokenPattern.test(token)) return yield* unauthorized
          const now = yield* DateTime.now
          const earliest = DateTime.subtractDuration(now, longest)
          const presented = { tokenHash: sha256(token), now, earliest }
          const found = yield* repository.findSession(presented)
          if (Option.isNone(found)) return yield* unauthorized
          const { createdAt, expiresAt, ...developer } = found.value
          const extended = DateTime.min(
            DateTime.addDuration(now, lifetime),
            DateTime.addDuration(createdAt, longest)
          )
          if (Duration.isGreaterThan(DateTime.distance(expiresAt, extended), extendInterval)) {
            yield* repository.extendSession({ sessionId: developer.sessionId, expiresAt: extended })
          }
          return developer
        })
      })
    })
  )
}
