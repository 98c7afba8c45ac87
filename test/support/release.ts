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

/** Writes the sources of a release to a temporary folder for the scope, with the packages of this one. */
export const sourcesOf = Effect.fnUntraced(function* (commit: string) {
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
    await symlink(join(root, "node_modules"), join(folder, "node_modules"))
  })
  return folder
})

const lockOf = (folder: string) => readFile(join(folder, "package-lock.json"), "utf8")

/** As {@link sourcesOf}, with the packages of that release; returns the file that starts it. */
export const checkOut = Effect.fnUntraced(function* (commit: string) {
  const folder = yield* sourcesOf(commit)
  yield* Effect.promise(async () => {
    if ((await lockOf(folder)) === (await lockOf(root))) return
    await rm(join(folder, "node_modules"))
    await execute("npm", ["ci", "--omit=dev", "--no-audit", "--no-fund"], { cwd: folder })
  })
  return join(folder, "src/server/main.ts")
})
