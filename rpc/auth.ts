/**
 * The callers (spec section 5) as HttpApi middleware tags, and what each provides to a handler.
 * Order of checks for every request: key, origin, token, feature gate, payload, ownership. The
 * middleware added last to an endpoint runs first, so endpoints list them in reverse.
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
  RateLimited,
  SecretKeyRequired,
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

/** `development` or `production`; nothing else names an environment. */
export const EnvironmentName = Schema.Literals(["development", "production"])
export type EnvironmentName = typeof EnvironmentName.Type

export const KeyKind = Schema.Literals(["publishable", "secret"])
export type KeyKind = typeof KeyKind.Type

/** The environment that a request is about; every tenant query names its id. */
export interface EnvironmentCaller {
  readonly environmentId: EnvironmentId
  readonly projectId: ProjectId
  readonly name: EnvironmentName
}

/** An environment as a key opens it. */
export interface KeyCaller extends EnvironmentCaller {
  readonly keyId: KeyId
  readonly keyKind: KeyKind
  /** The first characters of the key, by which people tell it from others. */
  readonly keyPrefix: string
}

/** The developer behind a `kds_` token. */
export interface DeveloperCaller {
  readonly developerId: DeveloperId
  readonly email: string
  readonly name: string | null
  readonly sessionId: DeveloperSessionId
}

/** Who does something, as the audit log names it: a key by its prefix, a developer by name. */
export interface Actor {
  readonly kind: "developer" | "key" | "system"
  readonly id: string
  readonly name: string
}

/** The signed-in player behind an access token. */
export interface PlayerCaller {
  readonly playerId: PlayerId
  readonly environmentId: EnvironmentId
  /** Absent when a secret key acts for the player. */
  readonly sessionId: SessionId | undefined
  readonly isGuest: boolean
  /** End of the access token, Unix milliseconds. */
  readonly expiresAt: number
}

export class CurrentEnvironment extends Context.Service<CurrentEnvironment, EnvironmentCaller>()(
  "rpc/auth/CurrentEnvironment"
) {}

export class CurrentPlayer extends Context.Service<CurrentPlayer, PlayerCaller>()(
  "rpc/auth/CurrentPlayer"
) {}

/** The player of {@link OptionalPlayerToken}, if the request names one. */
export class PlayerIfAny extends Context.Service<PlayerIfAny, PlayerCaller | undefined>()(
  "rpc/auth/PlayerIfAny"
) {}

/** The developer of a session (`kds_`). */
export class CurrentDeveloper extends Context.Service<CurrentDeveloper, DeveloperCaller>()(
  "rpc/auth/CurrentDeveloper"
) {}

/** The project that a developer's request is about; the developer is a member of it. */
export class CurrentProject extends Context.Service<
  CurrentProject,
  { readonly projectId: ProjectId }
>()("rpc/auth/CurrentProject") {}

/** Who acts: a secret key or a developer, so that one handler serves both. */
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

/** `?key=pk_...`: a plain link, which carries no headers; nothing but the start of a sign-in takes it. */
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
  error: [wire(InvalidKey), wire(SecretKeyRequired), wire(OriginNotAllowed), wire(RateLimited)]
}) {}

/**
 * `Authorization: Bearer <access token>`, beside the publishable key. A banned player still reads
 * until its token ends, and writes nothing (spec section 5, rule 7).
 */
export class PlayerToken extends HttpApiMiddleware.Service<
  PlayerToken,
  { provides: CurrentPlayer; requires: CurrentEnvironment }
>()("rpc/auth/PlayerToken", {
  security: { playerToken: HttpApiSecurity.bearer },
  error: [wire(Unauthorized), wire(TokenExpired), wire(PlayerBanned), wire(RateLimited)]
}) {}

/**
 * As {@link PlayerToken}, for endpoints that a player may or may not call as itself: without
 * `Authorization` there is no player, with one that is no good the request is refused.
 */
export class OptionalPlayerToken extends HttpApiMiddleware.Service<
  OptionalPlayerToken,
  { provides: PlayerIfAny; requires: CurrentEnvironment }
>()("rpc/auth/OptionalPlayerToken", {
  error: [wire(Unauthorized), wire(TokenExpired), wire(PlayerBanned), wire(RateLimited)]
}) {}

/** An endpoint that changes something and is open to banned players; read by {@link PlayerToken}. */
export const OpenToBanned = Context.Reference<boolean>("rpc/auth/OpenToBanned", {
  defaultValue: () => false
})
/** `Authorization: Bearer kds_...`: a developer at the dashboard, within the developer's pace. */
export class DeveloperSession extends HttpApiMiddleware.Service<
  DeveloperSession,
  { provides: CurrentDeveloper | CurrentActor }
>()("rpc/auth/DeveloperSession", {
  security: { developerSession: HttpApiSecurity.bearer },
  error: [wire(Unauthorized), wire(RateLimited)]
}) {}

/**
 * For paths with `:projectId`: the developer is a member of that project. Anybody else gets 404
 * `not_found`, as for a project that does not exist.
 */
export class ProjectMember extends HttpApiMiddleware.Service<
  ProjectMember,
  { provides: CurrentProject; requires: CurrentDeveloper }
>()("rpc/auth/ProjectMember", { error: wire(NotFound) }) {}

/**
 * For paths with `:projectId` and `:env`: the developer is a member of that project, and `env` is one
 * of its environments; anything else is 404 `not_found`.
 */
export class EnvironmentMember extends HttpApiMiddleware.Service<
  EnvironmentMember,
  { provides: CurrentEnvironment; requires: CurrentDeveloper }
>()("rpc/auth/EnvironmentMember", { error: wire(NotFound) }) {}

/** The feature an endpoint belongs to; read by {@link FeatureGate}. */
export const RequiredFeature = Context.Reference<FeatureName | undefined>(
  "rpc/auth/RequiredFeature",
  { defaultValue: () => undefined }
)

/**
 * 403 `feature_disabled`, or `feature_unavailable` where it is not offered, before anything is read
 * or written (spec section 1, rule 2).
 */
export class FeatureGate extends HttpApiMiddleware.Service<
  FeatureGate,
  { requires: CurrentEnvironment }
>()("rpc/auth/FeatureGate", { error: [wire(FeatureDisabled), wire(FeatureUnavailable)] }) {}

/** What every endpoint may answer, whatever it does: malformed input, pace, faults. */
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
