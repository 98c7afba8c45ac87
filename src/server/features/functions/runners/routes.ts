/**
 * Routes of calls to the runner that has the environment, wherever a call arrives. A route repeats a
 * call that has not begun at the environment's next place, and never one that has begun.
 */
import type { IncomingMessage } from "node:http"
import { Clock, Context, Effect, Layer } from "effect"
import type { FeatureUnavailable } from "#rpc/errors/codes"
import { Unavailable } from "#rpc/errors/codes"
import { functionRuntime } from "#rpc/functions/runtime-limits"
import type { EnvironmentId } from "#rpc/ids"
import { RunnerStreams } from "#server/cluster/runner-port"
import { monotonicMillis } from "#entities/monotonic"
import { type Exchange, isHostStopped, passRequest } from "../host/exchange.ts"
import type { FunctionHost } from "../host/host.ts"
import { FunctionHosts } from "../host/local.ts"
import { digestOf } from "../host/process-seal.ts"
import { type Handshake, passSocket } from "../host/socket.ts"
import { RunnerConnections } from "./connections.ts"
import { CallSeal, type RunnerCall } from "./call-seal.ts"
import { paths } from "./proxy-protocol.ts"
import type { RemoteHost } from "./leases.ts"
import {
  decodeOperation,
  decodeReply,
  encodeOperation,
  encodeReply,
  type Failure,
  type Operation
} from "./operations.ts"
import { meeting, NotAccepted, OutgoingCall, type RunnerTarget } from "./outgoing-call.ts"
import { proxyRequest, proxySocket, type Proxied } from "./proxy.ts"
import { HostStopped, makePerform } from "./operation-handlers.ts"
import { FunctionPlacement } from "./placement.ts"
import { receiveFrom } from "./proxy-server.ts"

/** Errors of a call before it begins. */
type Unplaced = FeatureUnavailable | Unavailable

export class FunctionRoutes extends Context.Service<
  FunctionRoutes,
  {
    /** Runs an operation on the runner of the environment. */
    readonly operate: (
      environmentId: EnvironmentId,
      operation: Operation
    ) => Effect.Effect<unknown, Failure>
    /** Answers a client request; returns a fault of the service. */
    readonly serve: (
      environmentId: EnvironmentId,
      exchange: Exchange
    ) => Effect.Effect<unknown, Unplaced>
    /** Opens a client socket; returns a fault of the service. */
    readonly upgrade: (
      environmentId: EnvironmentId,
      handshake: Handshake
    ) => Effect.Effect<unknown, Unplaced>
    /** Waits until the other runner has applied the last change of an environment. */
    readonly settled: (environmentId: EnvironmentId) => Effect.Effect<void, Failure>
  }
>()("server/features/functions/runners/routes/FunctionRoutes") {
  static readonly layer = Layer.effect(
    FunctionRoutes,
    Effect.gen(function* () {
      const placement = yield* FunctionPlacement
      const connections = yield* makeConnections
      const perform = yield* makePerformHere
      const route = yield* makeRoute(connections)
      yield* receive(perform)
      return FunctionRoutes.of({
        operate: (environmentId, operation) =>
          route<unknown, Failure>(environmentId, {
            local: (host) => perform(environmentId, host, operation),
            remote: (target) => operateOn(target, environmentId, operation)
          }),
        serve: (environmentId, exchange) =>
          route(environmentId, {
            local: (host) => runLocal(() => passRequest(host(), exchange)),
            remote: (target) =>
              runRemote(proxyRequest(target, exchange, runnerCall(environmentId, exchange)))
          }),
        upgrade: (environmentId, handshake) =>
          route(environmentId, {
            local: (host) => runLocal(() => passSocket(host(), handshake)),
            remote: (target) =>
              runRemote(proxySocket(target, handshake, runnerCall(environmentId, handshake)))
          }),
        settled: Effect.fnUntraced(function* (environmentId) {
          const address = yield* placement.elsewhere(environmentId)
          if (address === undefined || connections === undefined) return
          const target = { connections, address, watchers: new Set<() => void>() }
          yield* Effect.ignore(operateOn(target, environmentId, { kind: "settle" }))
        })
      })
    })
  )
}

const runnerCall = (
  environmentId: EnvironmentId,
  { clientAddress, mount, playerId, url }: Exchange | Handshake
): RunnerCall => {
  const forwarded = { mount, url, clientAddress }
  if (playerId === undefined) return { environmentId, forwarded }
  return { environmentId, forwarded: { ...forwarded, playerId } }
}

/** Runs a call of a host; fails with {@link HostStopped} if the host ended before the call began. */
const runLocal = (run: () => Promise<unknown>): Effect.Effect<unknown, HostStopped> =>
  Effect.flatMap(
    // The host may end at any time.
    Effect.promise(async () => run().catch((error: unknown) => error)),
    (fault) => (isHostStopped(fault) ? Effect.fail(new HostStopped()) : Effect.succeed(fault))
  )

const runRemote = (proxied: Promise<Proxied>): Effect.Effect<undefined, HostStopped> =>
  Effect.flatMap(
    Effect.promise(() => proxied),
    (outcome) => (outcome === "moved" ? Effect.fail(new HostStopped()) : Effect.undefined)
  )

const readAll = async (message: IncomingMessage): Promise<string> => {
  const chunks: Array<Buffer> = []
  let bytes = 0
  for await (const chunk of message) {
    if (!Buffer.isBuffer(chunk)) continue
    bytes += chunk.length
    if (bytes > functionRuntime.operationMaxBytes)
      throw new Error("The response of a runner is too large.")
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

const askRunner = async (
  target: RunnerTarget,
  environmentId: EnvironmentId,
  text: string
): Promise<string> => {
  const framing = String(Buffer.byteLength(text))
  const digest = digestOf(text)
  const call = new OutgoingCall(target, {
    call: { environmentId, digest, method: "POST", path: paths.operation, framing },
    onBegin: ({ sent }) => void sent.end(text)
  })
  try {
    return await readAll(await call.response())
  } finally {
    call.end()
  }
}

/** Runs an operation on another runner. */
const operateOn = (
  target: RunnerTarget,
  environmentId: EnvironmentId,
  operation: Operation
): Effect.Effect<unknown, Failure | HostStopped> =>
  Effect.tryPromise({
    try: async () => {
      const text = encodeOperation(operation)
      return decodeReply(await meeting(() => askRunner(target, environmentId, text)))
    },
    catch: (error) => (error instanceof NotAccepted ? new HostStopped() : new Unavailable())
  }).pipe(
    Effect.flatMap((reply) =>
      "failure" in reply ? Effect.fail(reply.failure) : Effect.succeed(reply.value)
    )
  )

/** Connections to the other runners; undefined in a deployment of a single process. */
const makeConnections = Effect.gen(function* () {
  const streams = yield* RunnerStreams
  if (streams === undefined) return undefined
  const runPromise = Effect.runPromiseWith(yield* Effect.context<never>())
  return yield* Effect.acquireRelease(
    Effect.sync(
      () =>
        new RunnerConnections(
          (address) => runPromise(streams.dial(address)),
          new CallSeal(streams.callKeys)
        )
    ),
    (connections) => Effect.sync(() => connections.close())
  )
})

type Perform = Effect.Success<ReturnType<typeof makePerform>>

const makePerformHere = Effect.gen(function* () {
  const { local } = yield* FunctionHosts
  if (typeof local === "string") return () => Effect.fail(new HostStopped())
  return yield* makePerform(local)
})

/** Implementations of a call for each place. */
interface CallRoutes<A, E> {
  readonly local: (host: () => FunctionHost) => Effect.Effect<A, E | HostStopped>
  readonly remote: (target: RunnerTarget) => Effect.Effect<A, E | HostStopped>
}

/**
 * Returns a function that runs a call at the environment's place, and retries until the call begins.
 */
const makeRoute = Effect.fnUntraced(function* (connections: RunnerConnections | undefined) {
  const placement = yield* FunctionPlacement
  const now = monotonicMillis(yield* Clock.Clock)
  const onOther = <A, E>(
    environmentId: EnvironmentId,
    { address, watchers }: RemoteHost,
    run: CallRoutes<A, E>["remote"]
  ): Effect.Effect<A, E | HostStopped | Unavailable> =>
    Effect.gen(function* () {
      const leave = connections?.enter(environmentId)
      if (connections === undefined || leave === undefined) return yield* new Unavailable()
      return yield* Effect.ensuring(run({ connections, address, watchers }), Effect.sync(leave))
    })
  return Effect.fnUntraced(function* <A, E>(
    environmentId: EnvironmentId,
    routes: CallRoutes<A, E>
  ) {
    const deadline = now() + functionRuntime.callWaitMillis
    for (;;) {
      const found = yield* placement.place(environmentId)
      const run =
        found.kind === "local"
          ? routes.local(found.host)
          : onOther(environmentId, found, routes.remote)
      const outcome = yield* Effect.catchIf(
        run,
        (error): error is Extract<E | HostStopped | Unavailable, HostStopped> =>
          error instanceof HostStopped,
        () => Effect.succeed(new HostStopped())
      )
      if (!(outcome instanceof HostStopped)) return outcome
      if (now() > deadline) return yield* new Unavailable()
      yield* placement.moved(environmentId, found)
    }
  })
})

/** Serves calls that other runners forward. */
const receive = Effect.fnUntraced(function* (perform: Perform) {
  const streams = yield* RunnerStreams
  if (streams === undefined) return
  const { here } = yield* FunctionPlacement
  const context = yield* Effect.context<never>()
  const runFork = Effect.runForkWith(context)
  const runPromise = Effect.runPromiseWith(context)
  const operate = (environmentId: EnvironmentId, text: string) => {
    const host = () => here(environmentId)
    return perform(environmentId, host, decodeOperation(text)).pipe(
      Effect.map((value = null) => encodeReply({ value })),
      Effect.catch((failure) =>
        Effect.succeed(failure instanceof HostStopped ? undefined : encodeReply({ failure }))
      )
    )
  }
  streams.serve(
    receiveFrom({
      seal: new CallSeal(streams.callKeys),
      here,
      operate: (environmentId, text) => runPromise(operate(environmentId, text)),
      onFault: (fault) => void runFork(Effect.logWarning("Failed to serve another runner", fault))
    })
  )
})
