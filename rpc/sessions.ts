/**
 * Sessions: a short-lived access token that is verified by its signature, and a refresh token that
 * rotates on every use. A session is a chain of refresh tokens on one device. Presenting a used token
 * revokes the session, except within ten seconds, when two tabs may race. A refresh with an
 * `Idempotency-Key` can be repeated until the new refresh token is used, so a lost response ends no session.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiSchema, OpenApi } from "effect/http-api"
import { PublishableKey, Requests } from "./auth.ts"
import {
  InvalidRefreshToken,
  InvalidIdempotencyKey,
  PlayerBanned,
  RefreshRace,
  SessionRevoked,
  wire
} from "./errors/codes.ts"
import { feature, group } from "./feature.ts"
import { DisplayName, Player } from "./players.ts"
import { repeatableRefresh } from "./spent-secrets.ts"
import { Timestamp } from "./text.ts"

export const sessionLimits = {
  passwordMinCharacters: 8,
  passwordMaxCharacters: 256
} as const

export const sessionThrottles = {
  guestPerAddress: { burst: 30, seconds: 60 },
  refreshPerSession: { burst: 30, seconds: 60 }
} as const

/** A signed-in player and its tokens. `expiresIn` is the access token's lifetime in seconds. */
export const Session = Schema.Struct({
  player: Player,
  accessToken: Schema.String,
  expiresIn: Schema.Int,
  refreshToken: Schema.String
}).annotate({
  identifier: "Session",
  description:
    "A signed-in player and its tokens. `expiresIn` is the access token's lifetime in seconds."
})
export type Session = typeof Session.Type

export const RefreshToken = Schema.Struct({
  refreshToken: Schema.String.check(Schema.isBetweenLength(1, 512))
})

/** The claims of an access token (ES256; `aud` is the environment, `sub` the player). */
export const AccessClaims = Schema.Struct({
  iss: Schema.String,
  aud: Schema.String,
  sub: Schema.String,
  sid: Schema.String,
  guest: Schema.Boolean,
  iat: Schema.Int,
  exp: Schema.Int
})
export type AccessClaims = typeof AccessClaims.Type

/** `/v1/auth`: sign in as a guest, refresh, sign out. */
export class SessionsApi extends group(
  "sessions",
  "players",
  "Sessions",
  "Guest sign-in, token refresh and sign-out."
)
  .add(
    HttpApiEndpoint.post("guest", "/guest", {
      payload: Schema.Struct({ displayName: Schema.optionalKey(DisplayName) }),
      success: Session
    }).annotate(OpenApi.Summary, "Create a guest player and sign it in"),
    HttpApiEndpoint.post("refresh", "/refresh", {
      headers: repeatableRefresh,
      payload: RefreshToken,
      success: Session,
      error: [
        wire(InvalidRefreshToken),
        wire(SessionRevoked),
        wire(PlayerBanned).pipe(HttpApiSchema.status(401)),
        wire(RefreshRace),
        wire(InvalidIdempotencyKey)
      ]
    }).annotate(OpenApi.Summary, "Rotate the refresh token"),
    HttpApiEndpoint.post("logout", "/logout", {
      payload: RefreshToken,
      success: Schema.Struct({})
    }).annotate(OpenApi.Summary, "End the refresh tokens of a session")
  )
  .prefix("/v1/auth")
  .middleware(Requests)
  .middleware(PublishableKey) {}

export const sessionsFeature = feature({
  word: "sessions",
  groups: [SessionsApi],
  exported: {
    sessions: Schema.Array(
      Schema.Struct({
        id: Schema.String,
        createdAt: Timestamp,
        lastUsedAt: Timestamp,
        /** User agent, always null: the service does not record it. */
        userAgent: Schema.Null
      })
    )
  }
})
