/** Packages of the npm registry that only tests need, in the versions of a lock file. */
import { cpSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import { run } from "./run.ts"

/** An answer of the registry takes a second. */
const probeMillis = 60_000

/** With an empty cache it takes one minute, or some on a busy machine. */
const installMillis = 480_000

const flags = ["--prefer-offline", "--no-audit", "--no-fund"]

/** Whether the npm registry answers: asked once, before hundreds of requests would each wait for it. */
export const isReachable = (): Promise<boolean> => {
  const words = ["view", "react", "name", "--prefer-online", "--fetch-retries=0"]
  return run({ cwd: import.meta.dirname, timeoutMillis: probeMillis }, "npm", ...words).then(
    () => true,
    () => false
  )
}

/** Installs the packages of a manifest and its lock file into a folder. */
export const installPackages = async (from: string, to: string): Promise<void> => {
  mkdirSync(to)
  for (const file of ["package.json", "package-lock.json"]) {
    cpSync(join(from, file), join(to, file))
  }
  await run({ cwd: to, timeoutMillis: installMillis }, "npm", "ci", ...flags)
}

/** Installs an archive beside these packages, as a game does. */
export const installArchive = async (folder: string, archive: string): Promise<void> => {
  await run({ cwd: folder }, "npm", "install", "--no-save", ...flags, archive)
}
