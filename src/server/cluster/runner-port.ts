/**
 * Runner port: the only module that opens and closes connections between runners. No protocol above
 * it sees a byte before the {@link acceptHandshake handshake}. The port runs mutual TLS below the
 * handshake, if that is set.
 *
 * Without TLS the handshake keeps strangers out, but nothing protects a connection from someone who
 * can change packets on the way. Use TLS where the network between runners is not trusted.
 */
import { connect, type Socket } from "node:net"
import * as NodeSocket from "@effect/platform-node/NodeSocket"
import * as NodeSocketServer from "@effect/platform-node/NodeSocketServer"
import { Cause, Context, Effect, Layer, Option } from "effect"
import { type RunnerAddress, RunnerStorage } from "effect/cluster"
import { SecureRandom } from "effect/crypto"
import { Socket as EngineSocket, SocketServer } from "effect/socket"
import { Secrets } from "#server/platform/secrets"
import { acceptHandshake, startHandshake } from "./authenticate.ts"
import {
  HandshakeError,
  keyPurpose,
  type RunnerIdentity,
  runnerKeys,
  type RunnerPeer,
  type StreamUse,
  streamUses
} from "./handshake.ts"
import { makeRejections } from "./rejections.ts"
import { formatAddress, parseAddress } from "./runner-address.ts"
import { runnerPort } from "./runner-port-limits.ts"
import { connectTls, makeTlsListener, readTls, type TlsFiles } from "./runner-tls.ts"
import { makeVersionCheck, RunnerRelease } from "./runner-versions.ts"
import { Unauthenticated } from "./unauthenticated.ts"

/** The label under which the keys of calls are derived from the master keys. */
const callPurpose = "calls between runners 1"

const openMillis = 1000
const lingerMillis = 500
const listMillis = 500

export class RunnerPort extends Context.Service<
  RunnerPort,
  {
    /**
     * Server that passes only connections of authenticated runners to its handler, with their
     * `NetSocket`.
     */
    readonly server: SocketServer.SocketServer["Service"]
    /** Opens an authenticated connection to a runner of the runner list. */
    readonly dial: (to: RunnerAddress.RunnerAddress) => Effect.Effect<Socket, HandshakeError>
  }
>()("server/cluster/runner-port/RunnerPort") {}

/** Connections between runners that carry the requests of clients, beside the cluster's RPC. */
export interface RunnerStreamsView {
  /** The address of this runner, as in the runner list. */
  readonly self: string
  /** Keys that authenticate each call on these connections, newest first; all runners have them. */
  readonly callKeys: ReadonlyArray<Uint8Array>
  /** Opens an authenticated connection to a runner of the runner list. */
  readonly dial: (to: string) => Effect.Effect<Socket, HandshakeError>
  /** Sets the handler of the authenticated connections that other runners open. */
  readonly serve: (handler: (socket: Socket) => void) => void
}

/** Streams of runners. The default is for a single process, without other runners. */
export const RunnerStreams = Context.Reference<RunnerStreamsView | undefined>(
  "server/cluster/runner-port/RunnerStreams",
  { defaultValue: () => undefined }
)

/** Closes a socket after it has sent everything, or after half a second. */
export const closeSoon = (socket: Socket): void => {
  socket.setTimeout(lingerMillis, () => socket.destroy()).destroySoon()
}

const late = new HandshakeError({
  reason: "late",
  message: `The other end took longer than ${runnerPort.handshakeSeconds} s to authenticate.`
})

const withinDeadline = Effect.timeoutOrElse({
  duration: runnerPort.handshakeSeconds * 1000,
  orElse: () => Effect.fail(late)
})

const unreachable = (message: string) => new HandshakeError({ reason: "unreachable", message })

const connectTo = ({ host, port }: RunnerAddress.RunnerAddress, tls: TlsFiles | undefined) =>
  Effect.callback<Socket, HandshakeError>((resume) => {
    const socket = tls === undefined ? connect({ host, port }) : connectTls(host, port, tls)
    socket.setNoDelay(true)
    socket.once(tls === undefined ? "connect" : "secureConnect", () =>
      resume(Effect.succeed(socket))
    )
    socket.on("error", (error) => {
      resume(Effect.fail(unreachable(error.message)))
      socket.destroy()
    })
    return Effect.sync(() => void socket.destroy())
  }).pipe(
    Effect.timeoutOrElse({
      duration: openMillis,
      orElse: () => Effect.fail(unreachable(`no connection within ${openMillis} ms`))
    })
  )

/** Addresses in the runner list; the last known ones while it cannot be read. */
const makeListed = Effect.gen(function* () {
  const storage = yield* RunnerStorage.RunnerStorage
  let listed: ReadonlyArray<string> = []
  return storage.getRunners.pipe(
    Effect.map((runners) => {
      listed = runners.map(([{ address }]) => formatAddress(address))
      return listed
    }),
    Effect.timeout(listMillis),
    Effect.catchCause(() => Effect.sync(() => listed))
  )
})

/** Authenticated connection and its use. */
interface Admitted {
  readonly socket: Socket
  readonly use: StreamUse | undefined
}

interface PortContext {
  readonly self: RunnerIdentity
  readonly tls: TlsFiles | undefined
  readonly listed: Effect.Effect<ReadonlyArray<string>>
  /** Runs a handshake on a socket and checks the peer's version; closes the socket if either fails. */
  readonly authenticate: (
    socket: Socket,
    handshake: Effect.Effect<RunnerPeer, HandshakeError, SecureRandom.SecureRandom>
  ) => Effect.Effect<Admitted, HandshakeError>
  readonly reject: Effect.Success<typeof makeRejections>
}

const makePortContext = Effect.fnUntraced(function* (address: RunnerAddress.RunnerAddress) {
  const { deriveKeys } = yield* Secrets
  const random = yield* SecureRandom.SecureRandom
  const self = {
    address: formatAddress(address),
    ...(yield* RunnerRelease),
    keys: runnerKeys(deriveKeys(keyPurpose))
  }
  const listed = yield* makeListed
  const checkVersion = yield* makeVersionCheck(self, listed)
  const context: PortContext = {
    self,
    tls: yield* readTls,
    listed,
    authenticate: (socket, handshake) =>
      handshake.pipe(
        Effect.provideService(SecureRandom.SecureRandom, random),
        Effect.tap(checkVersion),
        Effect.map(({ use }) => ({ socket, use })),
        Effect.onError(() => Effect.sync(() => closeSoon(socket)))
      ),
    reject: yield* makeRejections
  }
  return context
})

/** Returns the authenticated socket of an accepted connection; none if it was rejected. */
const makeAdmit = ({ authenticate, reject, self, tls }: PortContext) => {
  const unauthenticated = new Unauthenticated()
  const secure = tls === undefined ? Effect.succeed : makeTlsListener(tls)
  return (raw: Socket): Effect.Effect<Option.Option<Admitted>> => {
    const from = raw.remoteAddress ?? ""
    unauthenticated.add(raw, from)
    return secure(raw).pipe(
      Effect.onError(() => Effect.sync(() => raw.destroy())),
      Effect.flatMap((socket) => authenticate(socket, acceptHandshake(socket, self))),
      withinDeadline,
      Effect.ensuring(Effect.sync(() => unauthenticated.delete(raw))),
      Effect.tapError((error) => reject("Rejected a connection on the runner port", error, from)),
      Effect.option
    )
  }
}

/** A socket of the engine over a TLS connection. */
const securedSocket = (secured: Socket) =>
  NodeSocket.fromDuplex(
    Effect.acquireRelease(Effect.succeed(secured), (socket) => Effect.sync(() => closeSoon(socket)))
  )

const isSocketError = (cause: Cause.Cause<unknown>): boolean =>
  Option.exists(Cause.findErrorOption(cause), EngineSocket.isSocketError)

/** Passes a connection to the handler, and waits for its end. */
const serveStream = (socket: Socket, handler: (socket: Socket) => void): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    socket.once("close", () => resume(Effect.void))
    handler(socket)
  }).pipe(Effect.onInterrupt(() => Effect.sync(() => closeSoon(socket))))

const makeServer = Effect.fnUntraced(function* (
  { host, port }: RunnerAddress.RunnerAddress,
  context: PortContext,
  onStream: (socket: Socket) => void
) {
  const server = yield* NodeSocketServer.make({ host, port, noDelay: true })
  const admit = makeAdmit(context)
  const authenticated: SocketServer.SocketServer["Service"] = {
    address: server.address,
    run: (handler) =>
      server.run((plain) =>
        Effect.gen(function* () {
          const raw = Option.getOrThrow(yield* Effect.serviceOption(NodeSocket.NetSocket))
          const admitted = yield* admit(raw)
          if (Option.isNone(admitted)) return undefined
          const { socket, use } = admitted.value
          if (use !== undefined) return yield* serveStream(socket, onStream)
          return yield* handler(socket === raw ? plain : yield* securedSocket(socket)).pipe(
            Effect.provideService(NodeSocket.NetSocket, socket),
            Effect.catchCauseIf(isSocketError, (cause) =>
              Effect.logDebug("A connection of another runner has ended", cause)
            ),
            Effect.onInterrupt(() => Effect.sync(() => closeSoon(socket)))
          )
        })
      )
  }
  return authenticated
})

const unlisted = new HandshakeError({
  reason: "unlisted",
  message: "The address is not in the runner list."
})

const makeDial = ({ authenticate, listed, reject, self, tls }: PortContext) => {
  const open = Effect.fnUntraced(function* (to: RunnerAddress.RunnerAddress, use?: StreamUse) {
    const name = formatAddress(to)
    if (!(yield* listed).includes(name)) return yield* unlisted
    const socket = yield* connectTo(to, tls)
    const handshake = startHandshake(socket, self, name, use)
    return (yield* withinDeadline(authenticate(socket, handshake))).socket
  })
  return (to: RunnerAddress.RunnerAddress, use?: StreamUse) =>
    Effect.tapError(open(to, use), (error) =>
      error.reason === "unreachable"
        ? Effect.void
        : reject("Failed to dial a runner", error, formatAddress(to))
    )
}

/**
 * Listens at the address that other runners use. The cluster's RPC runs on the accepted
 * connections.
 */
export const runnerPortLayer = (address: RunnerAddress.RunnerAddress) =>
  Layer.effectContext(
    Effect.gen(function* () {
      const context = yield* makePortContext(address)
      let onStream = closeSoon
      const server = yield* makeServer(address, context, (socket) => onStream(socket))
      const dial = makeDial(context)
      return Context.make(RunnerPort, { server, dial }).pipe(
        Context.add(SocketServer.SocketServer, server),
        Context.add(RunnerStreams, {
          self: context.self.address,
          callKeys: (yield* Secrets).deriveKeys(callPurpose),
          dial: (to) => dial(parseAddress(to), streamUses[0]),
          serve: (handler) => {
            onStream = handler
          }
        })
      )
    })
  )
