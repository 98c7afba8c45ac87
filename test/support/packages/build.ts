/**
 * Prepares what all test files of the project `packages` share: a folder, which goes away with the run, the
 * archives of all packages, the programs that load them, and a service of the server package.
 */
import { readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import type { TestProject } from "vitest/node"
import manifest from "../../../package.json" with { type: "json" }
import { newFolder, unpackGame } from "./folder.ts"
import { installArchive, installPackages, isReachable } from "./install.ts"
import { run } from "./run.ts"
import { type GameService, startService } from "./service.ts"

declare module "vitest" {
  interface ProvidedContext {
    /** A folder for games. The end of the run removes it. */
    readonly folder: string
    /** The archives of all packages. */
    readonly archives: ReadonlyArray<string>
    /**
     * A folder with the packages of `test/packages/tools` and the client. Null when the registry cannot be
     * reached.
     */
    readonly consumers: string | null
    readonly service: { readonly baseUrl: string; readonly key: string }
  }
}

const root = fileURLToPath(new URL("../../..", import.meta.url))

const build = async (): Promise<ReadonlyArray<string>> => {
  const path = [join(root, "node_modules/.bin"), "/usr/local/bin", "/usr/bin", "/bin"].join(":")
  await run({ cwd: root, env: { PATH: path } }, process.execPath, "src/server/build/packages.ts")
  const packed = join(root, "dist/packages")
  const archives = readdirSync(packed).filter((file) => file.endsWith(".tgz"))
  return archives.map((file) => join(packed, file))
}

const install = async (consumers: string): Promise<boolean> => {
  if (!(await isReachable())) return false
  await installPackages(join(root, "test/packages/tools"), consumers)
  return true
}

const clientOf = (archives: ReadonlyArray<string>): ReadonlyArray<string> =>
  archives.filter((archive) => archive.includes("-client-"))

const startShared = (folder: string, archives: ReadonlyArray<string>): Promise<GameService> => {
  const server = archives.filter((archive) => archive.includes("-server-"))
  return startService(
    unpackGame(folder, [...server, ...clientOf(archives)], Object.keys(manifest.dependencies))
  )
}

const prepare = async (project: TestProject, folder: string): Promise<GameService> => {
  const consumers = join(folder, "consumers")
  const both = [build(), install(consumers)] as const
  // None writes on after the failure of the other.
  await Promise.allSettled(both)
  const [archives, isInstalled] = await Promise.all(both)
  if (isInstalled) {
    for (const archive of clientOf(archives)) await installArchive(consumers, archive)
  }
  const service = await startShared(folder, archives)
  const { baseUrl, key } = service
  project.provide("folder", folder)
  project.provide("archives", archives)
  project.provide("consumers", isInstalled ? consumers : null)
  project.provide("service", { baseUrl, key })
  return service
}

export default async (project: TestProject): Promise<() => Promise<void>> => {
  const folder = newFolder(tmpdir(), "svc-packages-")
  // A Postgres that is about to end may still write.
  const remove = (): void => rmSync(folder, { recursive: true, force: true, maxRetries: 10 })
  try {
    const service = await prepare(project, folder)
    return async () => {
      await service.stop()
      remove()
    }
  } catch (error) {
    remove()
    throw error
  }
}
