/**
 * The data plane of functions: it passes the requests and sockets of clients on. They bypass the routes of
 * the service, which does not read them.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Duplex } from "node:stream"
import { Cause, Context, Effect, Exit, Layer, Option } from "effect"
import type { PlayerCaller } from "#rpc/auth"
import {
  type FeatureUnavailable,
  type InvalidKey,
  NotFound,
  type OriginNotAllowed,
  type PlayerBanned,
  type SessionRevoked,
  type TokenExpired,
  type Unauthorized,
  Unavailable
} from "#rpc/errors/codes"
import type { EnvironmentId } from "#rpc/ids"
import { extendBodyDeadline } from "#server/platform/body-deadlines"
import { addressOf } from "#server/platform/client-address"
import { RequestCounts } from "#server/platform/request-counts"
import { Settings } from "#server/platform/settings/settings"
import { HostedApps } from "../hosting/apps.ts"
import { PlayerStatusCache } from "../players/status-cache.ts"
import { AccessTokens } from "../sessions/tokens.ts"
import { uploadMillis } from "./host/call-deadline.ts"
import { sendError } from "./host/exchange.ts"
import type { CallMetadata } from "./host/headers.ts"
import { refuseSocket } from "./host/socket.ts"
import { allowRequest, isPreflight, makePageAccess } from "./page-access.ts"
import { type CallerEnded, PlayerCalls } from "./player-calls.ts"
import { FunctionRoutes } from "./runners/routes.ts"
import { makeEnvironmentOf, type Target, targetOf } from "./targets.ts"

type Refusal =
  | NotFound
  | FeatureUnavailable
  | InvalidKey
  | OriginNotAllowed
  | PlayerBanned
  | SessionRevoked
  | TokenExpired
  | Unauthorized

const bearerForm = /^Bearer +(\S+)$/i

/**
 * Finds the player of a request. Refuses an expired token, so that the client refreshes it. The
 * function itself handles a token that is not of this environment.
 */
const makePlayerOf = Effect.gen(function* () {
  const tokens = yield* AccessTokens
  return Effect.fnUntraced(function* (environmentId: EnvironmentId, { headers }: IncomingMessage) {
    const [, token] = bearerForm.exec(headers.authorization ?? "") ?? []
    if (token === undefined) return undefined
    return yield* Effect.catchTag(
      tokens.verify(token, environmentId),
      "unauthorized",
      () => Effect.undefined
    )
  })
})

/** Watches the player of a call and refuses a banned one. A call without a player needs no watch. */
const makeWatch = Effect.gen(function* () {
  const calls = yield* PlayerCalls
  const statuses = yield* PlayerStatusCache
  return Effect.fnUntraced(function* (
    caller: PlayerCaller | undefined,
    cut: (error: CallerEnded) => void
  ) {
    if (caller === undefined) return () => undefined
    // From here on a change ends the call; the check finds one that came before.
    const unwatch = yield* calls.watch(caller, cut)
    yield* Effect.onError(
      statuses.requireActive(caller.environmentId, caller.playerId, false),
      () => Effect.sync(unwatch)
    )
    return unwatch
  })
})

/** Finds the host of a request, and what the function sees of the call. */
const makePrepare = Effect.gen(function* () {
  const { baseUrl, trustedProxies } = yield* Settings
  const access = yield* makePageAccess
  const environmentOf = yield* makeEnvironmentOf
  const playerOf = yield* makePlayerOf
  const watch = yield* makeWatch
  const { host: ownHost, protocol } = new URL(baseUrl)
  return Effect.fn("Functions.prepare")(function* (
    request: IncomingMessage,
    target: Target | undefined,
    cut: (error: CallerEnded) => void
  ) {
    const environment = target === undefined ? undefined : yield* environmentOf(target)
    if (target === undefined || environment === undefined) return yield* new NotFound()
    const { environmentId } = environment
    const { mount, path } = target
    const allowed = yield* access.check(environment, request.headers.origin)
    const host = mount === "service" ? ownHost : (request.headers.host ?? ownHost)
    const caller = yield* playerOf(environmentId, request)
    const metadata: Omit<CallMetadata, "callHeaders"> = {
      mount,
      url: `${protocol}//${host}${path}`,
      clientAddress: addressOf(request, trustedProxies),
      playerId: caller?.playerId
    }
    return { metadata, environmentId, access: allowed, unwatch: yield* watch(caller, cut) }
  })
})

type Prepared = Effect.Success<ReturnType<Effect.Success<typeof makePrepare>>>

/** Asks a client that sent `Expect: 100-continue` for the body, once a function takes the request. */
const askForBody = ({ headers }: IncomingMessage, response: ServerResponse): void => {
  if (/^100-continue$/i.test(headers.expect ?? "")) response.writeContinue()
}

/** Sends the reason of a refused request. */
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
    /** Whether only a function may answer the request. */
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
      /**
       * Runs a call. Sends the reason if the call did not begin, and logs failures of a call that did.
       */
      const run = (
        request: IncomingMessage,
        refuse: (error: Refusal | Unavailable) => void,
        cut: (error: CallerEnded) => void,
        pass: (prepared: Prepared) => Effect.Effect<unknown, Refusal | Unavailable>
      ): void => {
        const work = Effect.flatMap(prepare(request, target(request), cut), (prepared) =>
          Effect.ensuring(pass(prepared), Effect.sync(prepared.unwatch))
        )
        runFork(
          Effect.flatMap(Effect.exit(work), (exit) => {
            if (Exit.isFailure(exit)) return refused(exit, refuse)
            if (exit.value === undefined) return Effect.void
            return Effect.logWarning("Failed to call a function", exit.value)
          })
        )
      }
      return FunctionDataPlane.of({
        isFor: (request) => target(request) !== undefined,
        serve: (request, response) => {
          extendBodyDeadline(request, uploadMillis(request))
          const onBegin = (): void => askForBody(request, response)
          const refuse = (error: Refusal | Unavailable): void =>
            isPreflight(request) ? allowRequest(request, response) : sendError(response, error)
          run(request, refuse, refuse, ({ access, environmentId, metadata }) => {
            if (access !== undefined && isPreflight(request)) {
              return Effect.sync(() => allowRequest(request, response))
            }
            response.once("finish", () => counts.add(environmentId, response.statusCode))
            return routes.serve(environmentId, { request, response, access, onBegin, ...metadata })
          })
        },
        upgrade: (request, socket, head) => {
          // The client may go before its environment is known.
          socket.on("error", () => undefined)
          run(
            request,
            (error) => refuseSocket(socket, error),
            () => socket.destroy(),
            ({ environmentId, metadata }) =>
              routes.upgrade(environmentId, { request, socket, head, ...metadata })
          )
        }
      })
    })
  ).pipe(Layer.provide(PlayerCalls.layer))
}
