/**
 * Vite plugin: `vite dev` brings the service up beside the game. It injects the address and the
 * publishable key, pushes `svc.config.json` whenever it is saved, and shows two players in one window.
 * Production builds are left alone.
 *
 * @example
 * // vite.config.ts
 * import { playerBackend } from "@player-backend/cli/vite"
 * export default { plugins: [playerBackend()] }
 */
import { basename, resolve } from "node:path"
import type { Plugin, ViteDevServer } from "vite"
import { type LocalService, localService } from "./local-service.ts"
import { plainLine } from "../terminal-text.ts"
import { ownStorageScript, playersPage, playersPath } from "./players-page.ts"
import { pushFile } from "./push.ts"
import { portsOf } from "../service-port.ts"

/** Options of {@link playerBackend}. */
export interface PlayerBackendOptions {
  /** Port of the service. Default: 8080, or the next free one. */
  readonly port?: number
  /** Data directory of the service, relative to the project. Default: `.svc`. */
  readonly dataDir?: string
  /** The config file, relative to the project. Default: `svc.config.json`. */
  readonly config?: string
  /** Settings of the service, as environment variables. */
  readonly env?: Readonly<Record<string, string>>
}

/** Pushes the file, reports in Vite's log, and shows problems over the page. */
const push = async (server: ViteDevServer, file: string, service: LocalService) => {
  const { logger } = server.config
  const outcome = await pushFile(file, service)
  if (outcome === undefined) return
  if ("problems" in outcome) {
    const message = [`${file} was not pushed:`, ...outcome.problems].map(plainLine).join("\n  ")
    logger.error(message, { timestamp: true })
    return server.ws.send({ type: "error", err: { message, stack: "", plugin: "player-backend" } })
  }
  if (outcome.changed.length === 0) return
  const changed = plainLine(outcome.changed.join(", "))
  const name = basename(file)
  logger.info(`${name} is in force as version ${outcome.version}: ${changed}`, { timestamp: true })
  server.ws.send({ type: "full-reload" })
}

/** Serves the page with two players, and prints its address with those of Vite. */
const servePlayers = (server: ViteDevServer): void => {
  const { base } = server.config
  server.middlewares.use(playersPath, (_, response) => {
    response.setHeader("content-type", "text/html; charset=utf-8")
    response.end(playersPage(base))
  })
  const { printUrls } = server
  server.printUrls = () => {
    printUrls()
    const [local] = server.resolvedUrls?.local ?? []
    if (local === undefined) return
    server.config.logger.info(`  Two players: ${new URL(playersPath, local).href}`)
  }
}

/** Returns the plugin. */
export const playerBackend = (options: PlayerBackendOptions = {}): Plugin => {
  let service: LocalService | undefined
  return {
    name: "player-backend",
    // Not for builds, previews and unit tests.
    apply: (_, { command, isPreview = false, mode }) =>
      command === "serve" && !isPreview && mode !== "test",
    async config(config) {
      const { root = process.cwd() } = config
      const { dataDir = ".svc", env = {}, port } = options
      const ports = portsOf(config, port)
      service = await localService({ ports, env, dataDir: resolve(root, dataDir) })
      return {
        define: {
          "import.meta.env.VITE_SVC_URL": JSON.stringify(service.url),
          "import.meta.env.VITE_SVC_KEY": JSON.stringify(service.publishableKey)
        }
      }
    },
    async configureServer(server) {
      if (service === undefined) return
      const used = service
      const file = resolve(server.config.root, options.config ?? "svc.config.json")
      // One push after the other: the last save wins.
      let last = push(server, file, used)
      const changed = (path: string): void => {
        if (resolve(path) === file) last = last.then(() => push(server, file, used))
      }
      server.watcher.add(file)
      server.watcher.on("add", changed)
      server.watcher.on("change", changed)
      servePlayers(server)
      await last
    },
    transformIndexHtml: () => [
      { tag: "script", children: ownStorageScript, injectTo: "head-prepend" }
    ],
    async closeBundle() {
      const used = service
      service = undefined
      await used?.release()
    }
  }
}
