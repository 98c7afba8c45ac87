/**
 * The data plane of functions: `/fn/<label>/...` on the base URL, and `/.fn/...` on the origin of a hosted
 * app. Requests go to the function past the routes of the service, without being read here.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Duplex } from "node:stream"
import { Cache, Cause, Context, Effect, Exit, Layer, Option } from "effect"
import {
  type FeatureUnavailable,
  NotFound,
  type PlayerBanned,
  type TokenExpired,
  Unavailable
} from "#rpc/errors/codes"
import type { EnvironmentId } from "#rpc/ids"
import { caches } from "#rpc/limits"
import { AppRepository } from "#sql/hosting/apps"
import { extendBodyDeadline } from "#server/platform/body-deadlines"
import { addressOf } from "#server/platform/client-address"
import { RequestCounts } from "#server/platform/request-counts"
import { Settings } from "#server/platform/settings/settings"
import { hostOf, parseLabel } from "../hosting/addresses.ts"
import { HostedApps } from "../hosting/apps.ts"
import { PlayerStatusCache } from "../players/status-cache.ts"
import { AccessTokens } from "../sessions/tokens.ts"
import { uploadMillis } from "./host/call-deadline.ts"
import { sendError } from "./host/exchange.ts"
import type { CallFacts } from "./host/headers.ts"
import { refuseSocket } from "./host/socket.ts"
import { FunctionRoutes } from "./runners/routes.ts"

const servicePrefix = "/fn/"
const appPrefix = "/.fn/"

/** What a request asks for: an environment by label or host, and the path within its function. */
interface Target {
  readonly mount: CallFacts["mount"]
  /** A label of the base URL, or the host of an app. */
  readonly name: string
  readonly path: string
}

/** The target of a request; undefined if it is for nothing of functions. Pure. */
export const targetOf = (
  url: string,
  host: string,
  isAppHost: (host: string) => boolean
): Target | undefined => {
  if (!url.startsWith("/.fn") && !url.startsWith(servicePrefix)) return undefined
  const name = hostOf(host)
  if (isAppHost(name)) {
    const isOwn = url.startsWith(appPrefix) || /^\/\.fn(?:\?|$)/.test(url)
    return isOwn ? { mount: "app", name, path: rooted(url.slice(appPrefix.length - 1)) } : undefined
  }
  if (!url.startsWith(servicePrefix)) return undefined
  const [, label = "", path = ""] = /^([^/?]*)(.*)$/s.exec(url.slice(servicePrefix.length)) ?? []
  return { mount: "service", name: label, path: rooted(path) }
}

const rooted = (path: string): string => (path.startsWith("/") ? path : `/${path}`)

type Refusal = NotFound | FeatureUnavailable | PlayerBanned | TokenExpired

const bearerForm = /^Bearer +(\S+)$/i

/** The environment of a target, remembered for seconds. */
const makeEnvironmentOf = Effect.gen(function* () {
  const repository = yield* AppRepository
  const apps = yield* HostedApps
  const byLabel = yield* Cache.make({
    capacity: caches.hostedHosts,
    timeToLive: "10 seconds",
    lookup: (label: string) => {
      const parsed = parseLabel(label)
      if (parsed === undefined || parsed.version !== undefined) return Effect.undefined
      return Effect.map(
        repository.bySlug(parsed),
        (row) => Option.getOrUndefined(row)?.environmentId
      )
    }
  })
  return Effect.fnUntraced(function* ({ mount, name }: Target) {
    if (mount === "service") return yield* Cache.get(byLabel, name)
    const app = apps.known(name) ?? (yield* apps.load(name))
    return app === "unknown" ? undefined : app.environmentId
  })
})

/**
 * The player of a request. An expired token is refused, so that the client refreshes it; a token that is
 * none of this environment is the function's own affair.
 */
const makePlayerOf = Effect.gen(function* () {
  const statuses = yield* PlayerStatusCache
  const tokens = yield* AccessTokens
  return Effect.fnUntraced(function* (environmentId: EnvironmentId, { headers }: IncomingMessage) {
    const [, token] = bearerForm.exec(headers.authorization ?? "") ?? []
    if (token === undefined) return undefined
    const player = yield* Effect.catchTag(
      tokens.verify(token, environmentId),
      "unauthorized",
      () => Effect.undefined
    )
    if (player === undefined) return undefined
    yield* statuses.requireNotBanned(environmentId, player.playerId)
    return player.playerId
  })
})

/** Finds the host of a request, and what the function may know about it. */
const makePrepare = Effect.gen(function* () {
  const { baseUrl, trustedProxies } = yield* Settings
  const environmentOf = yield* makeEnvironmentOf
  const playerOf = yield* makePlayerOf
  const { host: ownHost, protocol } = new URL(baseUrl)
  return Effect.fn("Functions.prepare")(function* (
    request: IncomingMessage,
    target: Target | undefined
  ) {
    const environmentId = target === undefined ? undefined : yield* environmentOf(target)
    if (target === undefined || environmentId === undefined) return yield* new NotFound()
    const { mount, path } = target
    const host = mount === "service" ? ownHost : (request.headers.host ?? ownHost)
    const facts: Omit<CallFacts, "callHeaders"> = {
      mount,
      url: `${protocol}//${host}${path}`,
      clientAddress: addressOf(request, trustedProxies),
      playerId: yield* playerOf(environmentId, request)
    }
    return { facts, environmentId }
  })
})

/** Says to a client that waits before it sends the body that a function takes it. */
const askForBody = ({ headers }: IncomingMessage, response: ServerResponse): void => {
  if (/^100-continue$/i.test(headers.expect ?? "")) response.writeContinue()
}

/** Sends why a request was refused. */
const refused = (
  { cause }: Exit.Failure<unknown, Refusal | Unavailable>,
  send: (error: Refusal | Unavailable) => void
): Effect.Effect<void> => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  if (error !== undefined) return Effect.sync(() => send(error))
  return Effect.andThen(
    Effect.sync(() => send(new Unavailable())),
    Effect.logWarning("Failed to pass a request to its function", cause)
  )
}

/** Answers requests and sockets for functions. */
export class FunctionDataPlane extends Context.Service<
  FunctionDataPlane,
  {
    /** Whether nothing but a function may answer the request. */
    readonly isFor: (request: IncomingMessage) => boolean
    readonly serve: (request: IncomingMessage, response: ServerResponse) => void
    readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void
  }
>()("server/features/functions/data-plane/FunctionDataPlane") {
  static readonly layer = Layer.effect(
    FunctionDataPlane,
    Effect.gen(function* () {
      const apps = yield* HostedApps
      const runFork = Effect.runForkWith(yield* Effect.context<never>())
      const prepare = yield* makePrepare
      const routes = yield* FunctionRoutes
      const counts = yield* RequestCounts
      const target = ({ headers, url = "" }: IncomingMessage) =>
        targetOf(url, headers.host ?? "", apps.isAppHost)
      /** Sends why a call has not begun, and logs what went wrong in one that has. */
      const report = (
        work: Effect.Effect<unknown, Refusal | Unavailable>,
        refuse: (error: Refusal | Unavailable) => void
      ) =>
        Effect.flatMap(Effect.exit(work), (exit) => {
          if (Exit.isFailure(exit)) return refused(exit, refuse)
          if (exit.value === undefined) return Effect.void
          return Effect.logWarning("Failed to call a function", exit.value)
        })
      return FunctionDataPlane.of({
        isFor: (request) => target(request) !== undefined,
        serve: (request, response) => {
          extendBodyDeadline(request, uploadMillis(request))
          const onBegin = (): void => askForBody(request, response)
          runFork(
            Effect.flatMap(Effect.exit(prepare(request, target(request))), (exit) => {
              if (Exit.isSuccess(exit)) {
                const { environmentId, facts } = exit.value
                response.once("finish", () => counts.add(environmentId, response.statusCode))
                return report(
                  routes.serve(environmentId, { request, response, onBegin, ...facts }),
                  (error) => sendError(response, error)
                )
              }
              return refused(exit, (error) => sendError(response, error))
            })
          )
        },
        upgrade: (request, socket, head) => {
          // The client may go before its environment is known.
          socket.on("error", () => undefined)
          runFork(
            Effect.flatMap(Effect.exit(prepare(request, target(request))), (exit) => {
              if (Exit.isSuccess(exit)) {
                const { environmentId, facts } = exit.value
                return report(
                  routes.upgrade(environmentId, { request, socket, head, ...facts }),
                  (error) => refuseSocket(socket, error)
                )
              }
              return refused(exit, (error) => refuseSocket(socket, error))
            })
          )
        }
      })
    })
  )
}
