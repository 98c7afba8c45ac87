/**
 * Callers of the API as HttpApi middleware tags, and what each provides to a handler. The
 * middleware checks every request in this order: key, origin, token, feature gate, payload,
 * ownership. The middleware added last to an endpoint runs first, so endpoints list it in reverse.
 */
import { Context, Schema } from "effect"
import { HttpApiMiddleware, HttpApiSecurity } from "effect/http-api"
import type { FeatureName } from "./config-document/features.ts"
import {
  FeatureDisabled,
  FeatureUnavailable,
  InternalError,
  InvalidJson,
  InvalidKey,
  InvalidRequest,
  NotFound,
  OriginNotAllowed,
  PayloadTooLarge,
  PlayerBanned,
  PlayerNotFound,
  RateLimited,
  TokenExpired,
  Unauthorized,
  Unavailable,
  UnsupportedMediaType,
  wire
} from "./errors/codes.ts"
import type {
  DeveloperId,
  DeveloperSessionId,
  EnvironmentId,
  KeyId,
  PlayerId,
  ProjectId,
  SessionId
} from "./ids.ts"
import { http } from "./limits.ts"

/** The two environments of every project. */
export const EnvironmentName = Schema.Literals(["development", "production"])
export type EnvironmentName = typeof EnvironmentName.Type

export const KeyKind = Schema.Literals(["publishable", "secret"])
export type KeyKind = typeof KeyKind.Type

/** The environment of a request. Every tenant query names its id. */
export interface EnvironmentCaller {
  readonly environmentId: EnvironmentId
  readonly projectId: ProjectId
  readonly name: EnvironmentName
}

/** An environment, with the key that authenticated the request. */
export interface KeyCaller extends EnvironmentCaller {
  readonly keyId: KeyId
  readonly keyKind: KeyKind
  /** The first characters of the key, by which people recognize it. */
  readonly keyPrefix: string
}

/** The developer behind a `kds_` token. */
export interface DeveloperCaller {
  readonly developerId: DeveloperId
  readonly email: string
  readonly name: string | null
  readonly sessionId: DeveloperSessionId
}

/** Performer of an action, as in the audit log: a key by its prefix, a developer by name. */
export interface Actor {
  readonly kind: "developer" | "key" | "system"
  readonly id: string
  readonly name: string
}

/** The signed-in player behind an access token. */
export interface PlayerCaller {
  readonly playerId: PlayerId
  readonly environmentId: EnvironmentId
  /** Session of the player; absent when a secret key acts for the player. */
  readonly sessionId: SessionId | undefined
  readonly isGuest: boolean
  /** Expiry of the access token, in Unix milliseconds. */
  readonly expiresAt: number
}

export class CurrentEnvironment extends Context.Service<CurrentEnvironment, EnvironmentCaller>()(
  "rpc/auth/CurrentEnvironment"
) {}

/** The key of a request that may have either kind. */
export class CurrentKey extends Context.Service<CurrentKey, KeyCaller>()("rpc/auth/CurrentKey") {}

export class CurrentPlayer extends Context.Service<CurrentPlayer, PlayerCaller>()(
  "rpc/auth/CurrentPlayer"
) {}

/** Player of {@link OptionalPlayerToken}, if the request has one. */
export class OptionalPlayer extends Context.Service<OptionalPlayer, PlayerCaller | undefined>()(
  "rpc/auth/OptionalPlayer"
) {}

/** The developer of a session (`kds_`). */
export class CurrentDeveloper extends Context.Service<CurrentDeveloper, DeveloperCaller>()(
  "rpc/auth/CurrentDeveloper"
) {}

/** The project of a developer's request. The developer is a member of it. */
export class CurrentProject extends Context.Service<
  CurrentProject,
  { readonly projectId: ProjectId }
>()("rpc/auth/CurrentProject") {}

/** The secret key or developer behind a request, so that one handler serves both. */
export class CurrentActor extends Context.Service<CurrentActor, Actor>()("rpc/auth/CurrentActor") {}

const svcKey = HttpApiSecurity.apiKey({ key: "X-Svc-Key", in: "header" })

/** `X-Svc-Key: pk_...`: a page or an app. */
export class PublishableKey extends HttpApiMiddleware.Service<
  PublishableKey,
  { provides: CurrentEnvironment }
>()("rpc/auth/PublishableKey", {
  security: { publishableKey: svcKey },
  error: [wire(InvalidKey), wire(OriginNotAllowed)]
}) {}

/** `?key=pk_...`: a plain link, which carries no headers. Only the start of an OAuth sign-in accepts it. */
export class PublishableKeyInQuery extends HttpApiMiddleware.Service<
  PublishableKeyInQuery,
  { provides: CurrentEnvironment }
>()("rpc/auth/PublishableKeyInQuery", {
  security: { publishableKeyInQuery: HttpApiSecurity.apiKey({ key: "key", in: "query" }) },
  error: [wire(InvalidKey), wire(OriginNotAllowed)]
}) {}

/** `X-Svc-Key: sk_...`: a server, the CLI, CI. */
export class SecretKey extends HttpApiMiddleware.Service<
  SecretKey,
  { provides: CurrentEnvironment | CurrentActor }
>()("rpc/auth/SecretKey", {
  security: { secretKey: svcKey },
  error: [wire(InvalidKey), wire(OriginNotAllowed), wire(RateLimited)]
}) {}

/** `X-Svc-Key: pk_...` or `sk_...`: a page, or the server that renders one. */
export class AnyKey extends HttpApiMiddleware.Service<
  AnyKey,
  { provides: CurrentEnvironment | CurrentKey }
>()("rpc/auth/AnyKey", {
  security: { anyKey: svcKey },
  error: [wire(InvalidKey), wire(OriginNotAllowed)]
}) {}

/**
 * `Authorization: Bearer <access token>`, beside the publishable key. A banned player can still read
 * until the token expires, but not write.
 */
export class PlayerToken extends HttpApiMiddleware.Service<
  PlayerToken,
  { provides: CurrentPlayer; requires: CurrentEnvironment }
>()("rpc/auth/PlayerToken", {
  security: { playerToken: HttpApiSecurity.bearer },
  error: [wire(Unauthorized), wire(TokenExpired), wire(PlayerBanned), wire(RateLimited)]
}) {}

/**
 * Optional {@link PlayerToken}, for endpoints that also work without a player. Without
 * `Authorization` there is no player. The middleware refuses an invalid token.
 */
export class OptionalPlayerToken extends HttpApiMiddleware.Service<
  OptionalPlayerToken,
  { provides: OptionalPlayer; requires: CurrentEnvironment }
>()("rpc/auth/OptionalPlayerToken", {
  error: [wire(Unauthorized), wire(TokenExpired), wire(PlayerBanned), wire(RateLimited)]
}) {}

/**
 * Middleware for paths with `:playerId`: a server acts for that player, without a session and beyond the
 * rate limits of players.
 */
export class PlayerInPath extends HttpApiMiddleware.Service<
  PlayerInPath,
  { provides: CurrentPlayer; requires: CurrentEnvironment }
>()("rpc/auth/PlayerInPath", { error: wire(PlayerNotFound) }) {}

/** One token bucket: `burst` requests at once, refilled evenly over `seconds`. */
export interface Throttle {
  readonly burst: number
  readonly seconds: number
}

/** One sliding window: no `seconds` ever contain more than `limit` requests. */
export interface RateWindow {
  readonly limit: number
  readonly seconds: number
}

/** A rate limit of one player's calls of an endpoint; `name` is the word of its key. */
export type PlayerLimit = (Throttle | RateWindow) & { readonly name: string }

/** A rate limit of operators: of each key, or of the whole environment. The functions count as one key. */
export type CallerLimit = PlayerLimit & { readonly per: "environment" | "key" }

/** The rate limit of a player for an endpoint, beside that of all; read by {@link PlayerToken}. */
export const PlayerRate = Context.Reference<PlayerLimit | undefined>("rpc/auth/PlayerRate", {
  defaultValue: () => undefined
})

/** The rate limit of operators for an endpoint; read by {@link SecretKey} and {@link EnvironmentMember}. */
export const CallerRate = Context.Reference<CallerLimit | undefined>("rpc/auth/CallerRate", {
  defaultValue: () => undefined
})

/** Marks a writing endpoint that banned players may call; read by {@link PlayerToken}. */
export const OpenToBanned = Context.Reference<boolean>("rpc/auth/OpenToBanned", {
  defaultValue: () => false
})

/** Marks an endpoint that serves a deleted project, too, until its data is removed. */
export const OpenToDeleted = Context.Reference<boolean>("rpc/auth/OpenToDeleted", {
  defaultValue: () => false
})

/** `Authorization: Bearer kds_...`: a developer at the dashboard, within the rate limit of developers. */
export class DeveloperSession extends HttpApiMiddleware.Service<
  DeveloperSession,
  { provides: CurrentDeveloper | CurrentActor }
>()("rpc/auth/DeveloperSession", {
  security: { developerSession: HttpApiSecurity.bearer },
  error: [wire(Unauthorized), wire(RateLimited)]
}) {}

/** Developer of {@link OptionalDeveloperSession}, if the request has one. */
export class OptionalDeveloper extends Context.Service<
  OptionalDeveloper,
  DeveloperCaller | undefined
>()("rpc/auth/OptionalDeveloper") {}

/**
 * Optional {@link DeveloperSession}, for endpoints that also work without one. Without a valid
 * token there is no developer, so a page whose session has expired can start a sign-in.
 */
export class OptionalDeveloperSession extends HttpApiMiddleware.Service<
  OptionalDeveloperSession,
  { provides: OptionalDeveloper }
>()("rpc/auth/OptionalDeveloperSession") {}

/**
 * Middleware for paths of the developer alone. A caller with a key of an environment and without a
 * developer session gets 404 `not_found`, as if there were no such path.
 */
export class SessionOnly extends HttpApiMiddleware.Service<SessionOnly>()("rpc/auth/SessionOnly", {
  error: wire(NotFound)
}) {}

/**
 * Middleware for paths with `:projectId`: the developer is a member of that project. Other callers
 * get 404 `not_found`, as for a project that does not exist.
 */
export class ProjectMember extends HttpApiMiddleware.Service<
  ProjectMember,
  { provides: CurrentProject; requires: CurrentDeveloper }
>()("rpc/auth/ProjectMember", { error: wire(NotFound) }) {}

/**
 * Middleware for paths with `:projectId` and `:env`. The developer is a member of that project, and
 * `env` is one of its environments. Other requests get 404 `not_found`.
 */
export class EnvironmentMember extends HttpApiMiddleware.Service<
  EnvironmentMember,
  { provides: CurrentEnvironment; requires: CurrentDeveloper }
>()("rpc/auth/EnvironmentMember", { error: [wire(NotFound), wire(RateLimited)] }) {}

/** The feature that an endpoint belongs to; read by {@link FeatureGate}. */
export const RequiredFeature = Context.Reference<FeatureName | undefined>(
  "rpc/auth/RequiredFeature",
  { defaultValue: () => undefined }
)

/**
 * Middleware that refuses disabled features before anything is read or written: 403
 * `feature_disabled`, or `feature_unavailable` where the deployment lacks the feature.
 */
export class FeatureGate extends HttpApiMiddleware.Service<
  FeatureGate,
  { requires: CurrentEnvironment }
>()("rpc/auth/FeatureGate", { error: [wire(FeatureDisabled), wire(FeatureUnavailable)] }) {}

/** The largest body of an endpoint, in bytes; read by {@link Requests}. */
export const BodyMaxBytes = Context.Reference<number>("rpc/auth/BodyMaxBytes", {
  defaultValue: () => http.bodyMaxBytes
})

/** Whether the endpoint keeps the text of its body, in which every number stays as it is. */
export const KeepsBodyText = Context.Reference<boolean>("rpc/auth/KeepsBodyText", {
  defaultValue: () => false
})

/** Errors that every endpoint may answer: malformed input, rate limits, faults. */
export class Requests extends HttpApiMiddleware.Service<Requests>()("rpc/auth/Requests", {
  error: [
    wire(InvalidRequest),
    wire(InvalidJson),
    wire(PayloadTooLarge),
    wire(UnsupportedMediaType),
    wire(RateLimited),
    wire(InternalError),
    wire(Unavailable)
  ]
}) {}
