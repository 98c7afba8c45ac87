/**
 * Programs that run untrusted code: `workerd`, those that confine it, and `find`, which measures its files. Where
 * root runs the service, each process of untrusted code has a user of its own. So the programs must
 * be where every user can read them.
 */
import { execFile } from "node:child_process"
import {
  accessSync,
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  renameSync,
  rmSync,
  statSync
} from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { promisify } from "node:util"
import { isRoot, systemDirectory } from "../postgres/binaries.ts"

/** Programs and rights of this machine for untrusted code. */
export interface Programs {
  readonly workerd: string
  readonly prlimit: string
  readonly setpriv: string
  readonly nice: string
  readonly find: string
  /** The day of the release, `2026-07-30`: the latest behaviour that it knows. */
  readonly releaseDay: string
  /** Whether each process can have a user of its own. */
  readonly hasOwnUsers: boolean
}

/** Error with the reason why this machine cannot run untrusted code, and the remedy. */
export class Unsupported extends Error {}

const directories = ["/usr/bin", "/bin", "/usr/sbin", "/sbin"]

const findTool = (name: string, debianPackage = "util-linux"): string => {
  const found = directories.map((directory) => join(directory, name)).find(existsSync)
  if (found === undefined) {
    throw new Unsupported(`${name} is missing. Install ${debianPackage}.`)
  }
  return found
}

/** Whether every user can enter a directory, which needs search permission on each parent. */
export const isPublic = (directory: string): boolean => {
  for (let current = directory; ; current = dirname(current)) {
    if ((statSync(current).mode & 0o001) === 0) return false
    if (current === dirname(current)) return true
  }
}

/** The package of workerd for this platform, which is an optional dependency of `workerd`. */
const installedWorkerd = (): string => {
  const arch = process.arch === "x64" ? "64" : process.arch
  const name = `@cloudflare/workerd-${process.platform}-${arch}`
  try {
    const program = createRequire(import.meta.resolve("miniflare"))
      .resolve("workerd")
      .replace(/\/workerd\/lib\/main\.js$/, `/${name}/bin/workerd`)
    accessSync(program, constants.X_OK)
    return program
  } catch {
    throw new Unsupported(
      `the npm package ${name} is missing. Install with optional dependencies, on Linux x64 or arm64.`
    )
  }
}

/** Returns the release day: the second part of the version. */
const releaseDay = (): string => {
  const { version } = createRequire(createRequire(import.meta.url).resolve("miniflare"))(
    "workerd/package.json"
  ) as { version: string }
  return version.replace(/^\d+\.(\d{4})(\d\d)(\d\d)\..*$/, "$1-$2-$3")
}

/** Copies the program to where every user can read it, under a temporary name first. */
const sharedCopy = (program: string): string => {
  const { mtimeMs, size } = statSync(program)
  const copy = join(systemDirectory, `workerd-${size}-${Math.trunc(mtimeMs)}`)
  if (existsSync(copy)) return copy
  mkdirSync(systemDirectory, { recursive: true })
  chmodSync(systemDirectory, 0o755)
  const draft = `${copy}.${process.pid}`
  rmSync(draft, { force: true })
  try {
    linkSync(program, draft)
  } catch {
    copyFileSync(program, draft)
  }
  chmodSync(draft, 0o755)
  renameSync(draft, copy)
  return copy
}

const firstUser = 30_000

/** Whether a process can become another user here; some containers do not let root do so. */
const canChangeUser = async (setpriv: string): Promise<boolean> => {
  if (!isRoot) return false
  const user = [`--reuid=${firstUser}`, `--regid=${firstUser}`, "--clear-groups"]
  try {
    await promisify(execFile)(setpriv, [...user, "--bounding-set=-all", "--", "/bin/true"])
    return true
  } catch {
    return false
  }
}

/** Finds the programs; fails with {@link Unsupported} where untrusted code cannot be guarded. */
export const findPrograms = async (): Promise<Programs> => {
  if (process.platform !== "linux" || !existsSync("/proc/self/stat")) {
    throw new Unsupported(
      `untrusted code needs Linux with /proc, which bounds its CPU time; this is ${process.platform}.`
    )
  }
  const installed = installedWorkerd()
  const setpriv = findTool("setpriv")
  const prlimit = findTool("prlimit")
  const hasOwnUsers = await canChangeUser(setpriv)
  const isReadable = !hasOwnUsers || isPublic(dirname(installed))
  return {
    workerd: isReadable ? installed : sharedCopy(installed),
    prlimit,
    setpriv,
    nice: findTool("nice", "coreutils"),
    find: findTool("find", "findutils"),
    releaseDay: releaseDay(),
    hasOwnUsers
  }
}

/** Users of untrusted code: ids that no distribution assigns. */
export const ownUsers = { first: firstUser, last: 59_999 } as const
