/**
 * Gateway of a node. It accepts the WebSocket upgrades of both endpoints, and sweeps their sockets
 * once a second. It closes them all with 1012 when the node drains; rooms keep their seats then.
 */
import type { IncomingMessage } from "node:http"
import type { Duplex } from "node:stream"
import { Clock, Context, Effect, Exit, Layer, Schedule, Stream } from "effect"
import { WebSocketServer } from "ws"
import type { FeatureErrors } from "#rpc/config-document/feature-errors"
import type { CodedError } from "#rpc/errors/codes"
import type { EnvironmentId } from "#rpc/ids"
import { type CloseCode, closeCodes } from "#rpc/realtime"
import { Multimap } from "#entities/multimap"
import { makeTimer } from "#entities/timer"
import { addressOf } from "#server/platform/client-address"
import { monotonicMillis } from "#entities/monotonic"
import { forEachInSlices } from "#server/platform/slices"
import { Settings } from "#server/platform/settings/settings"
import { OutboxBudget } from "#server/platform/outbox-budget"
import { makePendingBatches } from "#server/platform/pending-changes"
import { WriteStats } from "#server/platform/socket-outbox"
import { Tenant } from "#server/platform/tenant"
import { Membership } from "#server/cluster/membership"
import { socketFeatureError } from "./frames.ts"
import { Hub } from "#server/links/hub"
import { Configs } from "#server/features/config/service"
import { Environments } from "#server/features/projects/environments"
import { makeLeaveCalls } from "#server/features/voice/service"
import { refuse } from "#server/http/raw-response"
import { HttpServerHandle, webSocketBounds } from "#server/http/server"
import { socketLimits } from "#server/platform/socket-limits"
import { featureErrorsById, featureErrorsOf } from "./admission.ts"
import {
  type ClientSocket,
  FrameStats,
  type SocketHost,
  type UpgradedSocket
} from "./client-socket.ts"

const drainMillis = 1500
const drainStepMillis = 50
const sweepMillis = 1000
const second = 1000
/**
 * Interval of the eviction check. A node may be evicted for a moment; after `evictionChecks` in a
 * row, it closes its sockets.
 */
const evictionCheckMillis = 500
const evictionChecks = 4

/** Unread bytes of all sockets of a process. */
export const OutboxesMaxBytes = Context.Reference("server/gateway/gateway/OutboxesMaxBytes", {
  defaultValue: (): number => socketLimits.outboxesMaxBytes
})

/** Monotonic counters of sockets. */
export class SocketStats {
  /** Upgrades that were accepted. */
  accepted = 0
  /** Upgrades that were refused: the node is full, or drains. */
  refused = 0
  /** Sockets whose credentials were admitted. */
  admitted = 0
  /** Closed sockets by the code of this side; undefined when the client closed, or the link broke. */
  readonly closed = new Map<CloseCode | undefined, number>()

  refuse(): void {
    this.refused += 1
  }

  close(code: CloseCode | undefined): void {
    this.closed.set(code, (this.closed.get(code) ?? 0) + 1)
  }
}

/** Creates the socket of an endpoint, which registers its own listeners. */
type OpenSocket = (upgraded: UpgradedSocket, request: IncomingMessage) => ClientSocket

/** The sockets of this node, over both endpoints. */
export class Gateway extends Context.Service<
  Gateway,
  {
    readonly host: SocketHost
    readonly sockets: ReadonlySet<ClientSocket>
    /** Admitted sockets by the hash of their key. */
    readonly byKey: Multimap<string, ClientSocket>
    readonly socketStats: SocketStats
    /** Closes a socket whose key is revoked. */
    readonly closeRevoked: (socket: ClientSocket, error: CodedError) => void
    /** Serves the upgrades of a path. */
    readonly serve: (path: string, open: OpenSocket) => Effect.Effect<void>
    /** Refuses further upgrades, closes all sockets with 1012, and waits until they have closed. */
    readonly drain: Effect.Effect<void>
  }
>()("server/gateway/gateway/Gateway") {
  static readonly layer = Layer.effect(
    Gateway,
    Effect.gen(function* () {
      const http = yield* HttpServerHandle
      const { trustedProxies } = yield* Settings
      const timer = yield* makeAuthTimer(() => sockets.sweepDue())
      const sockets: Sockets = new Sockets(timer)
      const { stats: socketStats } = sockets
      const { closeRevoked, host } = yield* makeHost(sockets)
      const wss = new WebSocketServer({ noServer: true, clientTracking: false, ...webSocketBounds })
      // It listens to no port of its own, and reports faults of a handshake to its client.
      wss.on("error", () => undefined)
      let draining = false
      const upgrade =
        (open: OpenSocket) =>
        (request: IncomingMessage, stream: Duplex, head: Buffer): void => {
          if (draining || !http.hasRoom()) {
            socketStats.refuse()
            return refuse(stream, 503, "unavailable", "Try another node.")
          }
          wss.handleUpgrade(request, stream, head, (ws) => {
            const { origin } = request.headers
            const address = addressOf(request, trustedProxies)
            sockets.open(open({ ws, stream, origin, address }, request))
          })
        }
      const drain = Effect.suspend(() => {
        draining = true
        return Effect.andThen(closeAll(sockets.all), sockets.awaitEmpty)
      })
      yield* Effect.addFinalizer(() =>
        Effect.andThen(
          drain,
          Effect.sync(() => wss.close())
        )
      )
      yield* Effect.sync(() => {
        afterReading(() => sockets.sweep())
        host.outboxBudget.sweep()
      }).pipe(Effect.repeat(Schedule.spaced(sweepMillis)), Effect.forkScoped)
      yield* followConfig(sockets.all, host)
      yield* followCluster(sockets.all)
      return Gateway.of({
        host,
        closeRevoked,
        sockets: sockets.all,
        byKey: sockets.byKey,
        socketStats,
        serve: (path, open) => Effect.sync(() => http.onUpgrade(path, upgrade(open))),
        drain
      })
    })
  )
}

/** Schedules a call for the time at which the credentials of a socket are due. */
interface AuthTimer {
  readonly now: () => number
  readonly set: (dueAt: number) => void
}

/**
 * Runs a sweep once the node has read what has arrived. After a stall, timers fire before that, and all
 * clients would look silent.
 */
const afterReading = (sweep: () => void): void => {
  setImmediate(sweep)
}

const makeAuthTimer = Effect.fnUntraced(function* (onDue: () => void) {
  const clock = yield* Clock.Clock
  const now = monotonicMillis(clock)
  const set = yield* makeTimer(() => afterReading(onDue))
  const timer: AuthTimer = {
    now,
    set: (dueAt) => set(clock.currentTimeMillisUnsafe() + Math.ceil(dueAt - now()))
  }
  return timer
})

/** Open sockets, those that close, and those whose credentials are due. */
class Sockets {
  readonly all = new Set<ClientSocket>()
  readonly byKey = new Multimap<string, ClientSocket>()
  readonly stats = new SocketStats()
  /** Sockets whose close the client has not confirmed yet. */
  readonly #closing = new Set<ClientSocket>()
  /** Sockets without credentials, and when these are due. All wait equally long: the oldest is first. */
  readonly #due = new Map<ClientSocket, number>()
  readonly #timer: AuthTimer

  constructor(timer: AuthTimer) {
    this.#timer = timer
  }

  readonly awaitEmpty = Effect.sleep(drainStepMillis).pipe(
    Effect.repeat({ until: () => this.all.size === 0 }),
    Effect.timeoutOption(drainMillis),
    Effect.when(Effect.sync(() => this.all.size > 0))
  )

  open(socket: ClientSocket): void {
    this.all.add(socket)
    this.stats.accepted += 1
    const dueAt = this.#timer.now() + socketLimits.authFrameSeconds * second
    this.#due.set(socket, dueAt)
    if (this.#due.size === 1) this.#timer.set(dueAt)
  }

  admitted(socket: ClientSocket): void {
    this.stats.admitted += 1
    this.#due.delete(socket)
    if (socket.admission !== undefined) this.byKey.add(socket.admission.keyHash, socket)
  }

  dismissed(socket: ClientSocket): void {
    if (socket.admission !== undefined) this.byKey.delete(socket.admission.keyHash, socket)
  }

  closing(socket: ClientSocket): void {
    this.#due.delete(socket)
    if (!this.all.delete(socket)) return
    this.#closing.add(socket)
    this.stats.close(socket.closedWith)
  }

  closed(socket: ClientSocket): void {
    this.#closing.delete(socket)
  }

  sweep(): void {
    for (const socket of this.all) socket.sweep()
    for (const socket of this.#closing) socket.sweep()
  }

  /** Sweeps each socket once more exactly when its credentials are due. */
  sweepDue(): void {
    const now = this.#timer.now()
    for (const [socket, dueAt] of this.#due) {
      if (dueAt > now) return this.#timer.set(dueAt)
      this.#due.delete(socket)
      socket.sweep()
    }
  }
}

const makeHost = Effect.fnUntraced(function* (sockets: Sockets) {
  const hub = yield* Hub
  const environments = yield* Environments
  const configs = yield* Configs
  const leaveCalls = yield* makeLeaveCalls
  /** Closes a socket whose key is revoked; its player leaves voice calls at once. */
  const closeRevoked = (socket: ClientSocket, error: CodedError): void => {
    const connection = socket.admission?.connection
    const leave = connection === undefined ? Effect.void : leaveCalls(connection)
    socket.close(closeCodes.unauthorized, "key_revoked", error)
    hub.run(leave)
  }
  const checkKey = (socket: ClientSocket): Effect.Effect<boolean> =>
    environments.findByHash(socket.admission?.keyHash ?? "").pipe(
      Effect.as(true),
      Effect.catchTag("invalid_key", (error) =>
        Effect.sync(() => {
          closeRevoked(socket, error)
          return false
        })
      ),
      Effect.provideService(Tenant, socket.environmentId)
    )
  const renewFeatures = (socket: ClientSocket): Effect.Effect<void> => {
    const { admission } = socket
    if (admission === undefined) return Effect.void
    return Effect.map(featureErrorsOf(admission.environmentId), (errors) =>
      socket.setFeatureErrors(errors)
    ).pipe(Effect.provideService(Configs, configs))
  }
  const onDismissed = (socket: ClientSocket): void => {
    const connection = socket.admission?.connection
    if (connection !== undefined) hub.connections.delete(connection)
    sockets.dismissed(socket)
  }
  const host: SocketHost = {
    scheduler: hub.scheduler,
    writeStats: new WriteStats(),
    outboxBudget: new OutboxBudget(yield* OutboxesMaxBytes),
    frameStats: new FrameStats(),
    now: monotonicMillis(yield* Clock.Clock),
    run: hub.run,
    checkKey,
    onAdmitted: (socket) => {
      sockets.admitted(socket)
      // From here on revocations and config pushes find the socket; this finds those that came before.
      hub.run(Effect.andThen(checkKey(socket), renewFeatures(socket)))
    },
    onDismissed,
    onClosing: (socket) => {
      onDismissed(socket)
      sockets.closing(socket)
    },
    onClosed: (socket) => sockets.closed(socket)
  }
  return { host, closeRevoked }
})

const closeAll = (sockets: ReadonlySet<ClientSocket>) =>
  forEachInSlices(sockets, (socket) => socket.close(closeCodes.draining, "draining"))

/** Closes the sockets of an evicted node: their players find their rooms again on any other. */
const followCluster = Effect.fnUntraced(function* (sockets: ReadonlySet<ClientSocket>) {
  const { isSelfEvicted } = yield* Membership
  let checks = 0
  yield* Effect.suspend(() => {
    checks = isSelfEvicted() ? checks + 1 : 0
    return checks < evictionChecks ? Effect.void : closeAll(sockets)
  }).pipe(Effect.repeat(Schedule.spaced(evictionCheckMillis)), Effect.forkScoped)
})

/** Sockets without a feature whose keys are checked at a time; most have the same key. */
const keyChecks = 16

/** Applies config pushes to the features of open sockets. */
const followConfig = Effect.fnUntraced(function* (
  sockets: ReadonlySet<ClientSocket>,
  { checkKey }: SocketHost
) {
  const configs = yield* Configs
  const apply = Effect.fnUntraced(function* (all: ReadonlyMap<string, FeatureErrors>) {
    const useless: Array<ClientSocket> = []
    yield* forEachInSlices(sockets, (socket) => {
      const errors = all.get(socket.environmentId)
      if (errors === undefined) return
      if (socketFeatureError(errors) === undefined) socket.setFeatureErrors(errors)
      else useless.push(socket)
    })
    // The environment of a deleted project has no features either, and its keys are the reason.
    yield* Effect.forEach(
      useless,
      (socket) =>
        Effect.exit(checkKey(socket)).pipe(
          Effect.map((live) => {
            if (Exit.isSuccess(live) && !live.value) return
            const errors = all.get(socket.environmentId)
            if (errors !== undefined) socket.setFeatureErrors(errors)
          })
        ),
      { concurrency: keyChecks, discard: true }
    )
  })
  const applyUntilDone = yield* makePendingBatches
  const applyTo = (environmentIds: ReadonlyArray<EnvironmentId>) =>
    Effect.flatMap(featureErrorsById(environmentIds), apply).pipe(
      Effect.provideService(Configs, configs)
    )
  yield* configs.changes.pipe(
    Stream.runForEachArray((environmentIds) => applyUntilDone(environmentIds, applyTo)),
    Effect.forkScoped
  )
})
