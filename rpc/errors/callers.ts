/** Errors of the caller: keys, tokens, origins, features, sessions (spec sections 5 and 7). */
import { Schema } from "effect"
import { coded, detailed } from "./wire.ts"

/** `X-Svc-Key` is missing, unknown or revoked. */
export class InvalidKey extends coded<InvalidKey>()(
  "invalid_key",
  401,
  "The X-Svc-Key header is missing, unknown or revoked."
) {}

/** The endpoint wants a secret key (`sk_...`) and was given a publishable one. */
export class SecretKeyRequired extends coded<SecretKeyRequired>()(
  "secret_key_required",
  403,
  "This endpoint needs a secret key."
) {}

/** No access token, or one that is not a token of this service and environment. */
export class Unauthorized extends coded<Unauthorized>()(
  "unauthorized",
  401,
  "A valid access token is needed."
) {}

/** The access token expired; refresh and retry once. */
export class TokenExpired extends coded<TokenExpired>()(
  "token_expired",
  401,
  "The access token has expired."
) {}

/** The player is banned. */
export class PlayerBanned extends detailed<PlayerBanned>()(
  "player_banned",
  403,
  "This player is banned.",
  {
    sanctionId: Schema.String,
    expiresAt: Schema.NullOr(Schema.String),
    note: Schema.NullOr(Schema.String)
  }
) {}

/** The browser's origin is not in `web.allowedOrigins`. */
export class OriginNotAllowed extends coded<OriginNotAllowed>()(
  "origin_not_allowed",
  403,
  "This origin is not in web.allowedOrigins."
) {}

/** The feature is off; `configPath` is the switch to set. */
export class FeatureDisabled extends detailed<FeatureDisabled>()(
  "feature_disabled",
  403,
  "This feature is turned off.",
  { feature: Schema.String, configPath: Schema.String }
) {}

/** The feature is not offered by this deployment and cannot be turned on. */
export class FeatureUnavailable extends detailed<FeatureUnavailable>()(
  "feature_unavailable",
  403,
  "This feature is not offered here.",
  { features: Schema.Array(Schema.String) }
) {}

/** The refresh token is unknown or expired; sign in again. */
export class InvalidRefreshToken extends coded<InvalidRefreshToken>()(
  "invalid_refresh_token",
  401,
  "The refresh token is unknown or expired."
) {}

/** The session chain was revoked (sign-out, reuse of a used token); sign in again. */
export class SessionRevoked extends coded<SessionRevoked>()(
  "session_revoked",
  401,
  "This session has been revoked."
) {}

/** Another tab rotated this token a moment ago: use the token it stored. */
export class RefreshRace extends coded<RefreshRace>()(
  "refresh_race",
  409,
  "Another tab just refreshed this session."
) {}
