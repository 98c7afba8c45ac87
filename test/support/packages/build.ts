/** Builds the packages once for all test files of the project `packages`. */
import { execFileSync } from "node:child_process"
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import type { TestProject } from "vitest/node"

declare module "vitest" {
  interface ProvidedContext {
    /** The archives of all packages. */
    readonly archives: ReadonlyArray<string>
  }
}

const root = fileURLToPath(new URL("../../..", import.meta.url))

export default (project: TestProject): void => {
  execFileSync(process.execPath, ["src/server/build/packages.ts"], {
    cwd: root,
    env: { PATH: `${join(root, "node_modules/.bin")}:/usr/local/bin:/usr/bin:/bin` }
  })
  const folder = join(root, "dist/packages")
  const archives = readdirSync(folder).filter((file) => file.endsWith(".tgz"))
  project.provide(
    "archives",
    archives.map((file) => join(folder, file))
  )
}
