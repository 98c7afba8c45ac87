/** The runtime of functions on real workerd, with a control plane in memory and an HTTP server before it. */
import { createServer, type IncomingMessage } from "node:http"
import type { AddressInfo } from "node:net"
import { ConfigProvider, Context, Effect, Layer, Redacted } from "effect"
import { SecureRandom } from "effect/crypto"
import { EnvironmentId } from "#rpc/ids"
import { FunctionHostRepository } from "#sql/functions/hosts"
import { ThisNode } from "#entities/local-actors"
import { FunctionHosts } from "#server/features/functions/host/local"
import { passRequest } from "#server/features/functions/host/exchange"
import { passSocket } from "#server/features/functions/host/socket"
import { FunctionRoutesLive } from "#server/features/functions/layers"
import { FunctionsRuntimeLive } from "#server/features/functions/distributed-runtime"
import type {
  FunctionBinding,
  FunctionLimits,
  FunctionProgram,
  FunctionState
} from "#server/features/functions/program"
import type { FunctionsRuntime } from "#server/features/functions/runtime"
import { FunctionSnapshots } from "#server/features/functions/snapshots"
import {
  type FunctionLogLine,
  FunctionsLogs,
  FunctionsQueues,
  FunctionsServerApi,
  FunctionsSource,
  FunctionsUsage,
  type NewMessage,
  type ServerCall
} from "#server/features/functions/control-plane"
import { Settings } from "#server/platform/settings/settings"
import { dataFolder } from "./data-folder.ts"

/** A program of one module, or of several by name. */
export const program = (
  modules: string | Readonly<Record<string, string>>,
  options: {
    readonly bindings?: ReadonlyArray<FunctionBinding>
    readonly limits?: Partial<FunctionLimits>
    readonly secrets?: Readonly<Record<string, string>>
    readonly version?: number
    readonly isDevelopment?: boolean
  } = {}
): FunctionProgram => {
  const named = typeof modules === "string" ? { "main.js": modules } : modules
  return {
    mainModule: Object.keys(named)[0] ?? "main.js",
    modules: Object.entries(named).map(([name, text]) => ({
      name,
      type: name.endsWith(".json") ? "json" : "esm",
      content: Buffer.from(text)
    })),
    bindings: options.bindings ?? [],
    vars: { GREETING: "hello" },
    compatibilityDate: undefined,
    version: options.version ?? 1,
    secrets: Object.fromEntries(
      Object.entries(options.secrets ?? {}).map(([name, value]) => [name, Redacted.make(value)])
    ),
    limits: { cpuMs: 1000, subRequests: 5, ...options.limits },
    isDevelopment: options.isDevelopment ?? true
  }
}

/** The control plane: what runs, and what the runtime has reported. */
export class FunctionsWorld extends Context.Service<
  FunctionsWorld,
  {
    readonly states: Map<string, FunctionState>
    readonly logs: Array<FunctionLogLine & { readonly environmentId: string }>
    readonly usage: Map<string, { requests: number; cpuMillis: number; bytes: number }>
    readonly messages: Array<
      NewMessage & { readonly environmentId: string; readonly queue: string }
    >
    readonly calls: Array<ServerCall>
    readonly suspended: Set<string>
    /** Where `/<environment>/<path>` reaches the function of the environment. */
    readonly url: string
    /** An environment that runs the program. */
    readonly live: (program: FunctionProgram) => EnvironmentId
  }
>()("test/support/functions/FunctionsWorld") {}

const makeWorld = () => ({
  states: new Map<string, FunctionState>(),
  logs: new Array<FunctionLogLine & { environmentId: string }>(),
  usage: new Map<string, { requests: number; cpuMillis: number; bytes: number }>(),
  messages: new Array<NewMessage & { environmentId: string; queue: string }>(),
  calls: new Array<ServerCall>(),
  suspended: new Set<string>()
})
type World = ReturnType<typeof makeWorld>

const storedIn = (state: FunctionState | undefined) =>
  state?.kind === "live"
    ? state.program.bindings.flatMap(({ name, type }) =>
        type === "db" || type === "kv" || type === "files" ? [{ name, type }] : []
      )
    : []

const controlPlane = (world: World) =>
  Layer.mergeAll(
    Layer.succeed(FunctionsSource, {
      load: (id) => Effect.sync(() => world.states.get(id) ?? { kind: "absent" }),
      resources: (id) => Effect.sync(() => storedIn(world.states.get(id))),
      suspend: (id) =>
        Effect.sync(() => {
          world.suspended.add(id)
          world.states.set(id, { kind: "suspended" })
        })
    }),
    Layer.succeed(FunctionsLogs, {
      append: (environmentId, lines) =>
        Effect.sync(
          () => void world.logs.push(...lines.map((line) => ({ ...line, environmentId })))
        )
    }),
    Layer.succeed(FunctionsUsage, {
      add: (id, used) =>
        Effect.sync(() => {
          const known = world.usage.get(id) ?? { requests: 0, cpuMillis: 0, bytes: 0 }
          known.requests += used.requests
          known.cpuMillis += used.cpuMillis
          known.bytes += used.bytes
          world.usage.set(id, known)
        })
    }),
    Layer.succeed(FunctionsQueues, {
      send: (environmentId, queue, messages) =>
        Effect.sync(() => {
          world.messages.push(...messages.map((message) => ({ ...message, environmentId, queue })))
          return "stored" as const
        }),
      waiting: (id) =>
        Effect.sync(() => {
          const waiting = new Map<string, number>()
          for (const { environmentId, queue } of world.messages) {
            if (environmentId === id) waiting.set(queue, (waiting.get(queue) ?? 0) + 1)
          }
          return waiting
        }),
      clear: () => Effect.void
    }),
    Layer.succeed(FunctionsServerApi, {
      call: (_, call) =>
        Effect.sync(() => {
          world.calls.push(call)
          return { status: 200, body: Buffer.from(JSON.stringify({ path: call.path })) }
        })
    })
  )

const SingleNode = ThisNode.layer.pipe(Layer.provide(SecureRandom.layerWebCrypto))

let ids = 0

const environmentId = (): EnvironmentId =>
  EnvironmentId.make(`env_${String((ids += 1)).padStart(26, "0")}`)

/** An HTTP server that passes everything on. */
const makeServer = Effect.gen(function* () {
  const { local } = yield* FunctionHosts
  if (typeof local === "string") return yield* Effect.die(new Error(local))
  const { hosts } = local
  const factsOf = (request: IncomingMessage) => {
    const [, id = "", ...rest] = (request.url ?? "").split("/")
    const player = request.headers["x-test-player"]
    return {
      host: hosts.of(id),
      facts: {
        mount:
          request.headers["x-test-mount"] === "service" ? ("service" as const) : ("app" as const),
        url: `https://game.example/${rest.join("/")}`,
        clientAddress: "192.0.2.1",
        playerId: typeof player === "string" ? player : undefined
      }
    }
  }
  const server = createServer((request, response) => {
    const { facts, host } = factsOf(request)
    const { process } = host.supervisor
    void passRequest(host, { request, response, ...facts }).then((fault) => {
      if (fault === undefined) return
      const state = host.supervisor.process === process ? "is the same" : "has been replaced"
      throw new Error(`${request.url} failed; process ${process?.pid} ${state}`, { cause: fault })
    })
  })
  server.on("upgrade", (request, socket, head) => {
    const { facts, host } = factsOf(request)
    void passSocket(host, { request, socket, head, ...facts })
  })
  yield* Effect.callback<void>((resume) => {
    server.listen(0, "127.0.0.1", () => resume(Effect.void))
  })
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      server.closeAllConnections()
      server.close()
    })
  )
  return (server.address() as AddressInfo).port
})

const temporaryDirectory = dataFolder("functions-test-")

/** Snapshots of a runner that needs none. */
const noSnapshots = Layer.succeed(FunctionSnapshots, {
  restore: () => Effect.succeed("local"),
  take: () => Effect.undefined,
  close: () => Effect.void,
  remove: () => Effect.void
})

/** The runtime with these settings. */
export const withFunctions = <R = never>(
  settings: Readonly<Record<string, string>> = {},
  snapshots: Layer.Layer<FunctionSnapshots, never, FunctionHosts | Settings | R> = noSnapshots
): Layer.Layer<FunctionsRuntime | FunctionSnapshots | FunctionsWorld | FunctionHosts, never, R> =>
  Layer.unwrap(
    Effect.gen(function* () {
      const world = makeWorld()
      const directory = settings["SVC_DATA_DIR"] ?? (yield* temporaryDirectory)
      const config = ConfigProvider.fromUnknown({ ...settings, SVC_DATA_DIR: directory })
      const World = Layer.effect(
        FunctionsWorld,
        Effect.map(makeServer, (port) =>
          FunctionsWorld.of({
            ...world,
            url: `http://127.0.0.1:${port}`,
            live: (program) => {
              const id = environmentId()
              world.states.set(id, { kind: "live", program })
              return id
            }
          })
        )
      )
      return Layer.mergeAll(World, FunctionsRuntimeLive).pipe(
        Layer.provide(FunctionRoutesLive),
        Layer.provideMerge(snapshots),
        Layer.provideMerge(FunctionHosts.layer),
        Layer.provide(controlPlane(world)),
        Layer.provide([Layer.mock(FunctionHostRepository)({}), SingleNode]),
        Layer.provide(Settings.layer),
        Layer.provide(ConfigProvider.layer(config)),
        Layer.orDie
      )
    })
  )
