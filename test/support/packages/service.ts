/** A service of the server package, as a game starts it. */
import { readFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { installed } from "./folder.ts"
import { start } from "./run.ts"

/** A running service of the server package. */
export interface GameService {
  readonly baseUrl: string
  readonly key: string
  readonly stop: () => Promise<void>
}

/** A port that nobody listens on. */
export const unusedPort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer()
    server.once("error", reject)
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      server.close(() => resolve(typeof address === "object" ? (address?.port ?? 0) : 0))
    })
  })

interface Keys {
  readonly baseUrl: string
  readonly development: { readonly publishableKey: string }
}

/** Starts the service of the server package, which is installed in the game. */
export const startService = async (game: string): Promise<GameService> => {
  const program = join(game, "node_modules/@player-backend/server/bin/player-backend.cjs")
  const data = join(game, "data")
  const env = {
    PATH: `${join(installed, ".bin")}:/usr/local/bin:/usr/bin:/bin`,
    HOME: game,
    HOST: "127.0.0.1",
    PORT: String(await unusedPort()),
    SVC_DATA_DIR: data,
    SVC_TURN_PORT: "0",
    SVC_DEMO_GAMES: "off"
  }
  const { stop } = await start({ cwd: game, env }, "Demo project keys", process.execPath, program)
  const { baseUrl, development }: Keys = JSON.parse(
    readFileSync(join(data, "dev-keys.json"), "utf8")
  )
  return { baseUrl, key: development.publishableKey, stop }
}
