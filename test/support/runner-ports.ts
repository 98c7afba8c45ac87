/** Runner ports on this machine with one runner list, and the peers that attack them. */
import { connect, createServer, type Server, type Socket } from "node:net"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { NodeServices, NodeSocket } from "@effect/platform-node"
import {
  Context,
  ConfigProvider,
  Deferred,
  Effect,
  Layer,
  Logger,
  Option,
  Queue,
  Schedule,
  type Scope
} from "effect"
import { Runner, RunnerAddress, RunnerStorage } from "effect/cluster"
import { SecureRandom } from "effect/crypto"
import { keyPurpose, type RunnerIdentity, runnerKeys } from "#server/cluster/handshake"
import { RunnerPort, runnerPortLayer } from "#server/cluster/runner-port"
import { RequestDrain, RunnerRelease } from "#server/cluster/runner-versions"
import { Secrets } from "#server/platform/secrets"
import { Settings } from "#server/platform/settings/settings"
import { freePort } from "#testing/runners"
import { masterKeyOf } from "./master-keys.ts"

export const host = "127.0.0.1"
export const masterKey = masterKeyOf(7)
export const otherMasterKey = masterKeyOf(8)

type Env = Readonly<Record<string, string>>

const platform = Layer.mergeAll(SecureRandom.layerWebCrypto, NodeServices.layer)

const settingsLayer = (env: Env) =>
  Settings.layer.pipe(
    Layer.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env: { ...env } })))
  )

const secretsLayer = (env: Env) => Secrets.layer.pipe(Layer.provide([settingsLayer(env), platform]))

/** A runner of which the attacker has recorded something, or that it claims to be. */
export const identityAt = (port: number, key = masterKey): Effect.Effect<RunnerIdentity> =>
  Effect.map(Secrets, ({ deriveKeys }) => ({
    address: `${host}:${port}`,
    protocol: 1,
    release: "1.0.0",
    keys: runnerKeys(deriveKeys(keyPurpose))
  })).pipe(Effect.provide(secretsLayer({ SVC_MASTER_KEY: key })), Effect.orDie)

export interface PortOptions {
  readonly env?: Env
  readonly protocol?: number
  readonly release?: string
  /** False: the caller runs the server. */
  readonly isRunning?: boolean
}

/** A runner list, and ports that read it. */
export const makePorts = Effect.gen(function* () {
  const storage = yield* RunnerStorage.makeMemory
  /** Adds an address to the runner list. */
  const register = (port: number) =>
    storage.register(
      Runner.make({ address: RunnerAddress.make(host, port), groups: ["default"], weight: 1 }),
      true
    )

  /** A runner that listens and is in the runner list. */
  const start = Effect.fnUntraced(function* (options: PortOptions = {}) {
    const port = yield* freePort
    const address = RunnerAddress.make(host, port)
    const lines: Array<string> = []
    const drains = { requested: 0 }
    const env = {
      SVC_MASTER_KEY: masterKey,
      SVC_RUNNER_HOST: host,
      SVC_RUNNER_PORT: String(port),
      ...options.env
    }
    const context = yield* Layer.build(
      runnerPortLayer(address).pipe(
        Layer.provide([secretsLayer(env), settingsLayer(env), platform]),
        Layer.provide([
          Layer.succeed(RunnerStorage.RunnerStorage, storage),
          Layer.succeed(
            RequestDrain,
            Effect.sync(() => void (drains.requested += 1))
          ),
          Layer.succeed(RunnerRelease, {
            protocol: options.protocol ?? 1,
            release: options.release ?? "1.0.0"
          })
        ]),
        Layer.provideMerge(
          Logger.layer([
            Logger.make(({ message }) => void lines.push([message].flat().map(String).join(" ")))
          ])
        )
      )
    )
    yield* register(port)
    const runnerPort = Context.get(context, RunnerPort)
    const accepted = yield* Queue.unbounded<Socket>()
    const run = runnerPort.server.run(() =>
      Effect.flatMap(Effect.serviceOption(NodeSocket.NetSocket), (socket) =>
        Effect.andThen(Queue.offer(accepted, Option.getOrThrow(socket)), Effect.never)
      )
    )
    if (options.isRunning !== false) {
      yield* Effect.forkScoped(Effect.provideContext(run, context))
    }
    const dial = (to: RunnerAddress.RunnerAddress) =>
      Effect.acquireRelease(Effect.provideContext(runnerPort.dial(to), context), (socket) =>
        Effect.sync(() => void socket.destroy())
      )
    /** Waits for a log line; dies with all lines if it does not come. */
    const logged = (pattern: RegExp) =>
      Effect.suspend(() =>
        pattern.test(lines.join("\n"))
          ? Effect.void
          : Effect.fail(`${pattern}: ${lines.join("\n")}`)
      ).pipe(Effect.retry({ times: 100, schedule: Schedule.spaced(20) }), Effect.orDie)
    return { port, address, context, dial, accepted, lines, logged, drains }
  })
  return { start, register }
})

/** A plain TCP client that records what it receives. */
export class Peer {
  readonly socket: Socket
  readonly closed = Deferred.makeUnsafe<void>()
  #received = Buffer.alloc(0)

  constructor(socket: Socket) {
    this.socket = socket
    socket.on("error", () => undefined)
    socket.on("data", (chunk: Buffer) => {
      this.#received = Buffer.concat([this.#received, chunk])
    })
    socket.once("close", () => Deferred.doneUnsafe(this.closed, Effect.void))
  }

  get received(): Buffer {
    return this.#received
  }

  get end(): Effect.Effect<void> {
    return Deferred.await(this.closed)
  }
}

/** Connects to a port; the scope closes the connection. */
export const openPeer = (
  port: number,
  localAddress = host
): Effect.Effect<Peer, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<Peer>((resume) => {
      const socket = connect({ host, port, localAddress })
      socket.once("connect", () => resume(Effect.succeed(new Peer(socket))))
    }),
    ({ socket }) => Effect.sync(() => void socket.destroy())
  )

/** A server of the attacker; the scope closes it and its connections. */
export const listen = (
  onConnection: (socket: Socket) => void
): Effect.Effect<number, never, Scope.Scope> =>
  Effect.gen(function* () {
    const port = yield* freePort
    const sockets = new Set<Socket>()
    yield* Effect.acquireRelease(
      Effect.callback<Server>((resume) => {
        const server = createServer((socket) => {
          sockets.add(socket.on("error", () => undefined))
          onConnection(socket)
        })
        server.listen(port, host, () => resume(Effect.succeed(server)))
      }),
      (server) =>
        Effect.sync(() => {
          for (const socket of sockets) socket.destroy()
          server.close()
        })
    )
    return port
  })

/** Settings of mutual TLS whose certificate is its own authority. */
export const tlsFiles = (certificate: { readonly key: string; readonly cert: string }) =>
  Effect.gen(function* () {
    const dir = yield* Effect.acquireRelease(
      Effect.promise(() => mkdtemp(join(tmpdir(), "runner-tls-"))),
      (path) => Effect.promise(() => rm(path, { recursive: true, force: true }))
    )
    const [cert, key] = [join(dir, "cert.pem"), join(dir, "key.pem")]
    yield* Effect.promise(async () => {
      await writeFile(cert, certificate.cert)
      await writeFile(key, certificate.key)
    })
    return { SVC_RUNNER_TLS_CERT: cert, SVC_RUNNER_TLS_KEY: key, SVC_RUNNER_TLS_CA: cert }
  })
