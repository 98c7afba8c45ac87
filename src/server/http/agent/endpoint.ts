/**
 * `/mcp`: the Model Context Protocol for agents with a secret key. It keeps no sessions, so every request
 * may reach another runner. `McpServer` serves the revision of 2026, which has none. Clients of the
 * revisions of 2025 begin with `initialize`; here they get no session id, which those revisions allow.
 */
import { ByteSize, Effect, Layer } from "effect"
import { McpProtocol, McpServer } from "effect/ai"
import { HttpIncomingMessage, HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import manifest from "../../../../package.json" with { type: "json" }
import type { Actor, KeyCaller } from "#rpc/auth"
import { InvalidKey, OriginNotAllowed, RateLimited } from "#rpc/errors/codes"
import { configLimits } from "#rpc/config-document/limits"
import { http } from "#rpc/limits"
import { callerThrottles } from "../callers.ts"
import { paths } from "#rpc/paths"
import { provideCredentials } from "#server/platform/credential-check"
import { KnownCaller } from "#server/platform/in-process"
import { takeToken } from "#server/platform/throttle-guard"
import { Throttles } from "#server/platform/throttles"
import { Environments } from "#server/features/projects/environments"
import { errorResponse } from "../errors.ts"
import { registerOperations } from "./operations.ts"
import { instructions, makeServe } from "./sessionless.ts"

const { name, version } = manifest

/** The largest message carries a config document. */
const messageMaxBytes = ByteSize.bytes(configLimits.bodyMaxBytes + http.bodyMaxBytes)

const modernRevision = "2026-07-28"

/** The agent acts for a key; its name in the audit log says so. */
const agentOf = ({ keyId, keyPrefix }: KeyCaller): Actor => ({
  kind: "key",
  id: keyId,
  name: `${keyPrefix} (agent)`
})

const bearer = /^Bearer +(\S+)$/i

/** How to authenticate, for clients that read it from a 401 (RFC 9110 section 11.6.1). */
const challenge = 'Bearer realm="player-backend", error="invalid_token"'

/** Authenticates an agent by its key, and serves it or passes it on. */
const Access = HttpRouter.middleware(
  Effect.gen(function* () {
    const environments = yield* Environments
    const serve = yield* makeServe
    const throttles = yield* Throttles
    return (modern) =>
      Effect.gen(function* () {
        const request = yield* HttpServerRequest.HttpServerRequest
        const { authorization = "", origin, "x-svc-key": given } = request.headers
        // No page may drive an agent: the key never belongs into one.
        if (origin !== undefined) return errorResponse(OriginNotAllowed, new OriginNotAllowed())
        const key = given ?? bearer.exec(authorization)?.[1] ?? ""
        const caller = yield* environments.findByKey(key, ["secret"])
        yield* takeToken(throttles, callerThrottles.secretKey, `key:${caller.keyId}`)
        const isModern = request.headers["mcp-protocol-version"] === modernRevision
        const served = isModern || request.method !== "POST" ? modern : serve(request)
        return yield* served.pipe(
          Effect.provideService(HttpIncomingMessage.MaxBodySize, messageMaxBytes),
          Effect.provideService(KnownCaller, {
            environment: caller,
            actor: agentOf(caller),
            door: "agent"
          }),
          provideCredentials(Effect.asVoid(environments.findByKey(key, ["secret"])))
        )
      }).pipe(
        Effect.catchTags({
          invalid_key: (error) =>
            Effect.succeed(
              HttpServerResponse.setHeader(
                errorResponse(InvalidKey, error),
                "www-authenticate",
                challenge
              )
            ),
          rate_limited: (error) => Effect.succeed(errorResponse(RateLimited, error))
        })
      )
  })
)

export const AgentRoute = McpServer.layerHttpRequestScoped({
  name,
  version,
  instructions,
  path: paths.mcp,
  protocols: [McpProtocol.v2026_07_28],
  registrations: Layer.effectDiscard(registerOperations)
}).pipe(
  Layer.provide(Access.layer),
  // It fails for options that the types here exclude.
  Layer.orDie
)
