/** Errors of the caller: keys, tokens, origins, features and sessions. */
import { Schema } from "effect"
import { coded, detailed } from "./wire.ts"

/**
 * `X-Svc-Key` is missing, unknown, revoked or of the wrong kind; the message says which. Configure a valid
 * key; do not retry.
 */
export class InvalidKey extends coded<InvalidKey>()(
  "invalid_key",
  401,
  "The X-Svc-Key header is missing, unknown or revoked."
) {}

/** The access token is missing, malformed, or belongs to another service or environment. Sign in again. */
export class Unauthorized extends coded<Unauthorized>()(
  "unauthorized",
  401,
  "This request needs a valid access token."
) {}

/** The access token expired. Refresh it and retry once. */
export class TokenExpired extends coded<TokenExpired>()(
  "token_expired",
  401,
  "The access token has expired."
) {}

/** The player is banned, until `expiresAt` or for good (null). Show `note`; the player can appeal. */
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

/** The page's origin is not in `web.allowedOrigins` of the config. Add it there. */
export class OriginNotAllowed extends coded<OriginNotAllowed>()(
  "origin_not_allowed",
  403,
  "This origin is not in web.allowedOrigins."
) {}

/** The feature is off in the config. Enable it at `configPath`. */
export class FeatureDisabled extends detailed<FeatureDisabled>()(
  "feature_disabled",
  403,
  "This feature is turned off.",
  { feature: Schema.String, configPath: Schema.String }
) {}

/** This deployment does not offer the features. The config cannot enable them. */
export class FeatureUnavailable extends detailed<FeatureUnavailable>()(
  "feature_unavailable",
  403,
  "This deployment does not offer this feature.",
  { features: Schema.Array(Schema.String) }
) {}

/** The refresh token is unknown or expired. Sign in again. */
export class InvalidRefreshToken extends coded<InvalidRefreshToken>()(
  "invalid_refresh_token",
  401,
  "The refresh token is unknown or expired."
) {}

/** The session was revoked, by sign-out or by the reuse of an old refresh token. Sign in again. */
export class SessionRevoked extends coded<SessionRevoked>()(
  "session_revoked",
  401,
  "This session has been revoked."
) {}

/** Another tab refreshed this session less than ten seconds ago. Use the token that it stored. */
export class RefreshRace extends coded<RefreshRace>()(
  "refresh_race",
  409,
  "Another tab just refreshed this session."
) {}
