/**
 * Middleware that authenticates callers: API keys, origins, player tokens, the feature gate. On a warm
 * node each check is a look-up in memory. The order is part of the API: key, origin, token, feature,
 * payload.
 */
import { Context, Effect, Layer, Option, Redacted, Schema } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import type { HttpApiEndpoint } from "effect/http-api"
import {
  type Actor,
  AnyKey,
  CurrentActor,
  CurrentEnvironment,
  CurrentKey,
  CurrentPlayer,
  FeatureGate,
  type KeyCaller,
  type KeyKind,
  OpenToBanned,
  OptionalPlayerToken,
  type PlayerCaller,
  OptionalPlayer,
  PlayerInPath,
  PlayerRate,
  PlayerToken,
  PublishableKey,
  PublishableKeyInQuery,
  RequiredFeature,
  SecretKey
} from "#rpc/auth"
import { PlayerNotFound, Unauthorized } from "#rpc/errors/codes"
import { PlayerId } from "#rpc/ids"
import { PlayerRepository } from "#sql/players"
import { provideCredentials, type WatchCredentials } from "#server/platform/credential-check"
import { KnownCaller } from "#server/platform/in-process"
import { takeToken } from "#server/platform/throttle-guard"
import { Throttles } from "#server/platform/throttles"
import { Usage } from "#server/platform/usage"
import { Configs, requireFeature } from "#server/features/config/service"
import { Origins } from "#server/features/hosting/origins"
import { PlayerStatusCache } from "#server/features/players/status-cache"
import { Environments } from "#server/features/projects/environments"
import { Sessions } from "#server/features/sessions/service"
import { AccessTokens } from "#server/features/sessions/tokens"
import { takeCallerRate } from "./caller-rate.ts"
import { CompactMessage } from "./compact-message.ts"
import { DeveloperAuthLive } from "./developer-auth.ts"

export const callerThrottles = {
  playerApi: { burst: 300, seconds: 60 },
  secretKey: { burst: 6000, seconds: 60 }
} as const

/** Provides a key as the credential of the request. */
const provideKey = ({ findByKey }: Environments["Service"], key: Redacted.Redacted) =>
  provideCredentials(Effect.asVoid(findByKey(Redacted.value(key))))

/** Returns the environment of a key of one of these kinds, if the page's origin is allowed. */
const makeByKey = Effect.fnUntraced(function* (kinds: ReadonlyArray<KeyKind>) {
  const environments = yield* Environments
  const origins = yield* Origins
  return Effect.fnUntraced(function* (key: Redacted.Redacted) {
    const environment = yield* environments.findByKey(Redacted.value(key), kinds)
    const { headers, source } = yield* HttpServerRequest.HttpServerRequest
    if (source instanceof CompactMessage) source.identify(environment.environmentId)
    yield* origins.check(environment, headers["origin"])
    return environment
  })
})

const makeByPublishableKey = makeByKey(["publishable"])

/** Requires a publishable key. It refuses a secret key, since pages must not contain one. */
const PublishableKeyLive = Layer.effect(
  PublishableKey,
  Effect.gen(function* () {
    const byKey = yield* makeByPublishableKey
    const environments = yield* Environments
    return PublishableKey.of({
      publishableKey: (handler, { credential }) =>
        Effect.flatMap(byKey(credential), (environment) =>
          handler.pipe(
            Effect.provideService(CurrentEnvironment, environment),
            provideKey(environments, credential)
          )
        )
    })
  })
)

/** The same with the key in the query of a plain link. */
const PublishableKeyInQueryLive = Layer.effect(
  PublishableKeyInQuery,
  Effect.map(makeByPublishableKey, (byKey) =>
    PublishableKeyInQuery.of({
      publishableKeyInQuery: (handler, { credential }) =>
        Effect.flatMap(byKey(credential), (environment) =>
          Effect.provideService(handler, CurrentEnvironment, environment)
        )
    })
  )
)

const actorOf = ({ keyId, keyPrefix }: KeyCaller): Actor => ({
  kind: "key",
  id: keyId,
  name: keyPrefix
})

/** Requires a secret key, and rate limits it. The known caller of a call in the process needs none. */
const SecretKeyLive = Layer.effect(
  SecretKey,
  Effect.gen(function* () {
    const byKey = yield* makeByKey(["secret"])
    const environments = yield* Environments
    const throttles = yield* Throttles
    return SecretKey.of({
      secretKey: Effect.fnUntraced(function* (handler, { credential, endpoint }) {
        const known = yield* KnownCaller
        if (known !== undefined) {
          const { actor, environment } = known
          const keyId = actor.kind === "key" ? actor.id : undefined
          yield* takeCallerRate(throttles, endpoint, environment.environmentId, keyId)
          return yield* handler.pipe(
            Effect.provideService(CurrentEnvironment, environment),
            Effect.provideService(CurrentActor, actor)
          )
        }
        const environment = yield* byKey(credential)
        yield* takeToken(throttles, callerThrottles.secretKey, `key:${environment.keyId}`)
        const { environmentId, keyId } = environment
        yield* takeCallerRate(throttles, endpoint, environmentId, keyId)
        return yield* handler.pipe(
          Effect.provideService(CurrentEnvironment, environment),
          Effect.provideService(CurrentActor, actorOf(environment)),
          provideKey(environments, credential)
        )
      })
    })
  })
)

/** Accepts a key of either kind. */
const AnyKeyLive = Layer.effect(
  AnyKey,
  Effect.map(makeByKey(["publishable", "secret"]), (byKey) =>
    AnyKey.of({
      anyKey: (handler, { credential }) =>
        Effect.flatMap(byKey(credential), (environment) =>
          handler.pipe(
            Effect.provideService(CurrentEnvironment, environment),
            Effect.provideService(CurrentKey, environment)
          )
        )
    })
  )
)

/** Whether a banned player may call the endpoint: reads, and endpoints marked `OpenToBanned`. */
const isOpenToBanned = (method: string, endpoint: HttpApiEndpoint.Top): boolean =>
  method === "GET" || method === "HEAD" || Context.get(endpoint.annotations, OpenToBanned)

/** The player of an access token, rate limited, and the check that it exists; a banned one may not write. */
const makeByPlayerToken = Effect.gen(function* () {
  const statuses = yield* PlayerStatusCache
  const tokens = yield* AccessTokens
  const throttles = yield* Throttles
  const usage = yield* Usage
  return Effect.fnUntraced(function* (token: string, endpoint: HttpApiEndpoint.Top) {
    const { environmentId } = yield* CurrentEnvironment
    if (token === "") return yield* new Unauthorized()
    const player = yield* tokens.verify(token, environmentId)
    yield* takeToken(throttles, callerThrottles.playerApi, `player:${player.playerId}`)
    const rate = Context.get(endpoint.annotations, PlayerRate)
    if (rate !== undefined) yield* takeToken(throttles, rate, `${rate.name}:${player.playerId}`)
    const { method } = yield* HttpServerRequest.HttpServerRequest
    const evenBanned = isOpenToBanned(method, endpoint)
    const check = statuses.requireActive(environmentId, player.playerId, evenBanned)
    yield* check
    yield* usage.playerSeen(environmentId, player.playerId)
    return { check, player }
  })
})

/**
 * Returns whether the player still exists, and has neither been banned nor lost the session since
 * the start. It does not cut a response that a banned player may begin.
 */
const makeWatchPlayer = Effect.gen(function* () {
  const sessions = yield* Sessions
  const statuses = yield* PlayerStatusCache
  return ({ environmentId, playerId, sessionId }: PlayerCaller): WatchCredentials =>
    Effect.gen(function* () {
      const endOf = (id: typeof sessionId) =>
        id === undefined ? Effect.undefined : sessions.revokedAt(environmentId, id)
      const before = yield* statuses.get(environmentId, playerId)
      const endedBefore = yield* endOf(sessionId)
      return Effect.gen(function* () {
        const now = yield* statuses.get(environmentId, playerId)
        if (now === undefined) return false
        if (now.banned !== undefined && before?.banned === undefined) return false
        return endedBefore !== undefined || (yield* endOf(sessionId)) === undefined
      })
    })
})

const PlayerTokenLive = Layer.effect(
  PlayerToken,
  Effect.gen(function* () {
    const byToken = yield* makeByPlayerToken
    const watchPlayer = yield* makeWatchPlayer
    return PlayerToken.of({
      playerToken: Effect.fnUntraced(function* (handler, { credential, endpoint }) {
        const { check, player } = yield* byToken(Redacted.value(credential), endpoint)
        return yield* handler.pipe(
          Effect.provideService(CurrentPlayer, player),
          provideCredentials(check, watchPlayer(player))
        )
      })
    })
  })
)

const bearer = /^Bearer +(\S+)$/i

const OptionalPlayerTokenLive = Layer.effect(
  OptionalPlayerToken,
  Effect.gen(function* () {
    const byToken = yield* makeByPlayerToken
    const watchPlayer = yield* makeWatchPlayer
    return OptionalPlayerToken.of(
      Effect.fnUntraced(function* (handler, { endpoint }) {
        const { authorization } = (yield* HttpServerRequest.HttpServerRequest).headers
        if (authorization === undefined) {
          return yield* Effect.provideService(handler, OptionalPlayer, undefined)
        }
        const { check, player } = yield* byToken(bearer.exec(authorization)?.[1] ?? "", endpoint)
        return yield* handler.pipe(
          Effect.provideService(OptionalPlayer, player),
          provideCredentials(check, watchPlayer(player))
        )
      })
    )
  })
)

const isPlayerId = Schema.is(PlayerId)

/** The player of the path, for whom a server acts. */
const PlayerInPathLive = Layer.effect(
  PlayerInPath,
  Effect.map(PlayerRepository, (players) =>
    PlayerInPath.of(
      Effect.fnUntraced(function* (handler) {
        const { environmentId } = yield* CurrentEnvironment
        const { playerId } = yield* HttpRouter.params
        if (!isPlayerId(playerId)) return yield* new PlayerNotFound()
        const found = Option.getOrUndefined(yield* players.find(environmentId, playerId))
        if (found === undefined) return yield* new PlayerNotFound()
        return yield* Effect.provideService(handler, CurrentPlayer, {
          environmentId,
          playerId,
          isGuest: found.isGuest,
          sessionId: undefined,
          expiresAt: Infinity
        })
      })
    )
  )
)

/** Refuses endpoints of a feature that the environment cannot use. */
const FeatureGateLive = Layer.effect(
  FeatureGate,
  Effect.gen(function* () {
    const configs = yield* Configs
    return FeatureGate.of(
      Effect.fnUntraced(function* (handler, { endpoint }) {
        const feature = Context.get(endpoint.annotations, RequiredFeature)
        if (feature === undefined) return yield* handler
        const { environmentId } = yield* CurrentEnvironment
        yield* Effect.provideService(requireFeature(environmentId, feature), Configs, configs)
        return yield* handler
      })
    )
  })
)

/** All caller middleware. */
export const CallersLive = Layer.mergeAll(
  PublishableKeyLive,
  PublishableKeyInQueryLive,
  AnyKeyLive,
  SecretKeyLive,
  PlayerTokenLive,
  OptionalPlayerTokenLive,
  PlayerInPathLive,
  FeatureGateLive,
  DeveloperAuthLive
)
