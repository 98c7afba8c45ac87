/** The sources of another release, taken from the history of this repository. */
import { execFile, execFileSync } from "node:child_process"
import { mkdtemp, readFile, rm, symlink } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { Effect } from "effect"

const execute = promisify(execFile)
const root = fileURLToPath(new URL("../..", import.meta.url))

/** Returns why the commit cannot be checked out, with the remedy; undefined if it can. */
export const missingHistory = (commit: string): string | undefined => {
  try {
    execFileSync("git", ["cat-file", "-e", `${commit}^{commit}`], { cwd: root, stdio: "ignore" })
    return undefined
  } catch {
    return `commit ${commit} is not in this clone: fetch the history (git fetch --unshallow)`
  }
}

const lockOf = (folder: string) => readFile(join(folder, "package-lock.json"), "utf8")

/** Gives the release its packages: those of this repository if they are the same. */
const install = async (folder: string): Promise<void> => {
  if ((await lockOf(folder)) === (await lockOf(root))) {
    await symlink(join(root, "node_modules"), join(folder, "node_modules"))
  } else {
    await execute("npm", ["ci", "--omit=dev", "--no-audit", "--no-fund"], { cwd: folder })
  }
}

/** Writes the release to a temporary folder for the scope; returns the file that starts it. */
export const checkOut = Effect.fnUntraced(function* (commit: string) {
  const missing = missingHistory(commit)
  if (missing !== undefined) return yield* Effect.die(new Error(missing))
  const folder = yield* Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "release-"))),
    (made) => Effect.promise(() => rm(made, { recursive: true, force: true }))
  )
  yield* Effect.promise(async () => {
    const archive = join(folder, "release.tar")
    await execute("git", ["archive", "--format=tar", `--output=${archive}`, commit], { cwd: root })
    await execute("tar", ["-xf", archive], { cwd: folder })
    await install(folder)
  })
  return join(folder, "src/server/main.ts")
})
