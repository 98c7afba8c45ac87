/** Starts the servers in `../peers`, whose packages are installed only when somebody needs them. */
import { spawnSync } from "node:child_process"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { freePort, launchServer, type RunningServer } from "../machine/process.ts"

const folder = fileURLToPath(new URL("../peers/", import.meta.url))

/** Installs the packages of a folder, once. */
function install(packages: string): void {
  // npm writes it last: with it the installation is whole.
  if (existsSync(join(packages, "node_modules/.package-lock.json"))) return
  process.stdout.write(`installing the peers' packages: npm ci in ${packages}\n`)
  const { status } = spawnSync("npm", ["ci"], { cwd: packages, stdio: "inherit" })
  if (status !== 0) throw new Error(`npm ci in ${packages} failed: run it there to see why`)
}

/** Installs the packages of `../peers/clients`, and returns the path of a file in it. */
export function peerClient(file: string): string {
  install(join(folder, "clients"))
  return join(folder, "clients", file)
}

/** Installs the packages, and returns the path of a program in `../peers`. */
export function peerProgram(file: string): string {
  install(folder)
  return join(folder, file)
}

/** Starts `../peers/<file>` as in production, its port first among its arguments, on Node or on Bun. */
export async function startPeer(
  file: string,
  core: number | undefined,
  args: ReadonlyArray<string> = [],
  runtime: "node" | "bun" = "node"
): Promise<RunningServer> {
  install(folder)
  const port = await freePort()
  const env = { ...process.env, NODE_ENV: "production", DEBUG: undefined }
  const options = { script: join(folder, file), core, port, args: [`${port}`, ...args], env }
  if (runtime === "node") return launchServer(options)
  return launchServer({ ...options, executable: join(folder, "node_modules/.bin", runtime) })
}
