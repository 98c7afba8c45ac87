/**
 * `svc dev`: service and game together. Vite serves the game of this folder and reloads it on each change; the
 * plugin starts the service and pushes `svc.config.json` on each save.
 */
import { createRequire } from "node:module"
import { pathToFileURL } from "node:url"
import { Duration, Effect, Option, Path } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import type * as Vite from "vite"
import { exitCodes, Failure, usageFailure } from "./failures.ts"
import { switchFlag } from "./files.ts"
import { note } from "./output.ts"
import { servicePortKey } from "./service-port.ts"

/** The Vite that the game has installed. */
const loadVite = Effect.fnUntraced(function* (root: string) {
  const path = yield* Path.Path
  const missing = usageFailure(
    `Vite is not installed in ${root}.`,
    "npm install                    installs what package.json names",
    "npm install --save-dev vite    adds it to a game that has none"
  )
  return yield* Effect.tryPromise({
    try: async () => {
      const from = createRequire(path.join(root, "package.json"))
      const vite: typeof Vite = await import(pathToFileURL(from.resolve("vite")).href)
      return vite
    },
    catch: () => missing
  })
})

/** The plugin, which the package exports for the game's own Vite config, too. */
interface PluginModule {
  readonly playerBackend: () => Vite.Plugin
}

const loadPlugin = async (): Promise<PluginModule> => {
  const module: PluginModule = await import(new URL("./vite/plugin.ts", import.meta.url).href)
  return module
}

const pluginName = "player-backend"

/** Whether the game's own Vite config has the plugin already. */
const hasPlugin = async (vite: typeof Vite, root: string): Promise<boolean> => {
  const env = { command: "serve", mode: "development" } as const
  const loaded = await vite.loadConfigFromFile(env, undefined, root)
  const plugins = await Promise.all([loaded?.config.plugins ?? []].flat(3))
  return plugins.some(
    (plugin) =>
      typeof plugin === "object" &&
      plugin !== null &&
      "name" in plugin &&
      plugin.name === pluginName
  )
}

interface DevOptions {
  readonly root: string
  readonly port: Option.Option<number>
  readonly servicePort: Option.Option<number>
  readonly open: boolean
}

const start = async (vite: typeof Vite, { open, port, root, servicePort }: DevOptions) => {
  const isConfigured = await hasPlugin(vite, root)
  const { playerBackend } = await loadPlugin()
  // The plugin in the game's own config reads it, too: the command line decides.
  const flags = Option.isSome(servicePort) ? { [servicePortKey]: servicePort.value } : {}
  const server = await vite.createServer({
    root,
    ...flags,
    plugins: isConfigured ? [] : [playerBackend()],
    server: { open, ...(Option.isSome(port) ? { port: port.value, strictPort: true } : {}) }
  })
  await server.listen()
  server.printUrls()
  return server
}

/** Seconds until the command ends. The service gets 15 s to end; Vite itself ends at once. */
const closeSeconds = 20

/** Ends the command on Ctrl-C, even if something still hangs. */
const close = (server: Vite.ViteDevServer) =>
  Effect.interruptible(Effect.promise(() => server.close())).pipe(
    Effect.timeoutOrElse({
      duration: Duration.seconds(closeSeconds),
      orElse: () => note(`The service or Vite did not stop within ${closeSeconds} s; leaving them.`)
    })
  )

const failed = (cause: unknown) =>
  new Failure({
    exitCode: exitCodes.unreachable,
    code: "dev_failed",
    message: cause instanceof Error ? cause.message : String(cause)
  })

const portFlag = (name: string, description: string) =>
  Flag.Int(name).pipe(Flag.withDescription(description), Flag.optional)

export const devCommand = Command.make(
  "dev",
  {
    root: Argument.String("dir").pipe(
      Argument.withDescription("The folder of the game (default: this one)"),
      Argument.withDefault(".")
    ),
    port: portFlag("port", "The port of the game (default: 5173, or the next free one)"),
    servicePort: portFlag(
      "service-port",
      "The port of the service (default: that in vite.config, else 8080 or the next free one)"
    ),
    open: switchFlag("open", "Open the browser; --no-open does not", true)
  },
  Effect.fn(function* (options) {
    const path = yield* Path.Path
    const root = path.resolve(options.root)
    const vite = yield* loadVite(root)
    const started = Effect.tryPromise({
      try: () => start(vite, { ...options, root }),
      catch: failed
    })
    const server = Effect.acquireRelease(started, close)
    yield* note("Starting the service; the first start makes a database and takes seconds.")
    yield* Effect.scoped(Effect.andThen(server, Effect.never))
  })
).pipe(
  Command.withDescription("Start the service and the game, open the browser, reload on change"),
  Command.withExamples([{ command: "svc dev --no-open", description: "Without a browser" }])
)
