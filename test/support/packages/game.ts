/** A game in a folder of its own, with the packages of `npm run packages` installed. */
import { execFileSync, spawn } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { fileURLToPath } from "node:url"
import { inject } from "vitest"
import { at } from "#testing/players"

const root = fileURLToPath(new URL("../../..", import.meta.url))
const installed = join(root, "node_modules")

/** The archives of all packages, which are built once for all test files. */
export const buildPackages = (): ReadonlyArray<string> => inject("archives")

/** `client` of `player-backend-client-0.1.0.tgz`. */
const nameOf = (archive: string): string => basename(archive).split("-")[2] ?? ""

/** A folder with these packages, and the installed ones that the game asks for. */
export const makeGame = (
  archives: ReadonlyArray<string>,
  dependencies: ReadonlyArray<string> = []
): string => {
  const game = mkdtempSync(join(tmpdir(), "svc-game-"))
  writeFileSync(join(game, "package.json"), `{ "name": "game", "type": "module" }`)
  for (const archive of archives) {
    const folder = join(game, "node_modules/@player-backend", nameOf(archive))
    mkdirSync(folder, { recursive: true })
    execFileSync("tar", ["xzf", archive, "-C", folder, "--strip-components", "1"])
  }
  for (const name of dependencies) {
    mkdirSync(join(game, "node_modules", name, ".."), { recursive: true })
    symlinkSync(join(installed, name), join(game, "node_modules", name))
  }
  return game
}

/** A running service of the server package. */
export interface GameService {
  readonly baseUrl: string
  readonly key: string
  readonly stop: () => Promise<void>
}

/** Starts the service of the server package, which is installed in the game. */
export const startService = async (game: string, port: number): Promise<GameService> => {
  const program = join(game, "node_modules/@player-backend/server/bin/player-backend.cjs")
  const data = join(game, "data")
  const child = spawn(process.execPath, [program], {
    cwd: game,
    env: {
      PATH: `${join(installed, ".bin")}:/usr/local/bin:/usr/bin:/bin`,
      HOME: game,
      HOST: "127.0.0.1",
      PORT: String(port),
      SVC_DATA_DIR: data,
      SVC_TURN_PORT: "0",
      SVC_DEMO_GAMES: "off"
    },
    stdio: ["ignore", "pipe", "pipe"]
  })
  let output = ""
  await new Promise<void>((resolve, reject) => {
    const read = (chunk: Buffer): void => {
      output += chunk.toString()
      if (output.includes("Demo project keys")) resolve()
    }
    child.stdout.on("data", read)
    child.stderr.on("data", read)
    child.once("exit", () => reject(new Error(`The service has ended:\n${output}`)))
  })
  const keys: unknown = JSON.parse(readFileSync(join(data, "dev-keys.json"), "utf8"))
  return {
    baseUrl: String(at(keys, "baseUrl")),
    key: String(at(keys, "development", "publishableKey")),
    stop: () =>
      new Promise((resolve) => {
        child.once("exit", () => resolve())
        child.kill("SIGTERM")
      })
  }
}

/** Runs a program of this repository in the game, and returns its output. */
export const runIn = (game: string, program: string, ...words: ReadonlyArray<string>): string => {
  try {
    return execFileSync(join(installed, ".bin", program), words, { cwd: game, encoding: "utf8" })
  } catch (error) {
    const output =
      typeof error === "object" && error !== null && "stdout" in error ? error.stdout : ""
    const message = `${program} ${words.join(" ")} failed:\n${String(output)}`
    throw new Error(message, { cause: error })
  }
}

/** The manifest of an installed package. */
export const manifestOf = (game: string, name: string): unknown =>
  JSON.parse(readFileSync(join(game, "node_modules/@player-backend", name, "package.json"), "utf8"))

/** The program of another version of Node, which npm installs in a folder of its own. */
export const nodeOf = (version: string): string => {
  const folder = mkdtempSync(join(tmpdir(), "svc-node-"))
  writeFileSync(join(folder, "package.json"), `{ "name": "node" }`)
  const words = ["install", `node@${version}`, "--no-audit", "--no-fund", "--prefer-offline"]
  execFileSync("npm", words, { cwd: folder, stdio: "ignore" })
  return join(folder, "node_modules/node/bin/node")
}
