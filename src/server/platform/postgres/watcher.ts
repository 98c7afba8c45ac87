/**
 * Program that stops the embedded Postgres when no service has used it for a while: services that were
 * killed could not. It runs in a process session of its own, so nothing that ends a service ends it, and
 * there is one for each data directory. It imports nothing but Node, which keeps it small.
 *
 * Each service holds a shared lock on the file of users as long as it lives. An exclusive lock on that
 * file proves that none does. Services join under the start lock, and the watcher acts under it, too. Only
 * sessions show services of older releases: `stop-unused.ts`, which can count them, stops the server.
 * The watcher then removes a temporary data directory: the process that would have done so was killed.
 */
import { execFileSync, spawnSync } from "node:child_process"
import { readFileSync, rmSync, statSync } from "node:fs"
import { connect } from "node:net"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { fileURLToPath, pathToFileURL } from "node:url"
import { beginExclusive, lockFiles, temporary, usedExitCode } from "./lock-files.ts"

const [directory = "", home = "", programs = "", idle = "", lifetime = "", uid = "", gid = ""] =
  process.argv.slice(2)

const isTemporary = lifetime === temporary

/** Checks for users in one idle time. */
const checks = 12

// Kept out of reach of a command that kills each process named node.
process.title = "player-backend-watcher"

/** Opens the lock of a file that exists: a data directory that is being removed gets no new one. */
const openLock = (name: string) => {
  const file = pathToFileURL(join(directory, name))
  file.searchParams.set("mode", "rw")
  const database = new DatabaseSync(file, { timeout: 0 })
  const acquire = (): boolean => {
    try {
      database.exec(beginExclusive)
      return true
    } catch {
      return false
    }
  }
  return { acquire, release: () => database.exec("rollback") }
}

const data = join(home, "data")

/** The port of the server; undefined if it was stopped, or its directory removed. */
const serverPort = (): number | undefined => {
  try {
    return Number(readFileSync(join(data, "postmaster.pid"), "utf8").split("\n")[3])
  } catch {
    return undefined
  }
}

/**
 * Whether a program listens on the port. After a crash, the process id in `postmaster.pid` may
 * belong to another program.
 */
const listens = (port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port, "127.0.0.1")
    socket.once("connect", () => resolve(true)).on("error", () => resolve(false))
    socket.once("close", () => socket.destroy())
    socket.setTimeout(1000, () => resolve(false))
  })

const stopUnused = fileURLToPath(new URL("stop-unused.ts", import.meta.url))

/** Stops the server unless a session shows a service; returns whether it stopped. */
const stopServer = (): boolean => {
  const { status } = spawnSync(process.execPath, [stopUnused, directory], { stdio: "ignore" })
  if (status === 0) return true
  if (status === usedExitCode) return false
  // The release that started this process was removed meanwhile.
  const options = { cwd: home, env: {}, stdio: "ignore" as const }
  const user = uid === "" ? {} : { uid: Number(uid), gid: Number(gid) }
  const stop = ["stop", "-D", data, "-m", "fast", "-w"]
  execFileSync(join(programs, "pg_ctl"), stop, { ...options, ...user })
  return true
}

/** The file that has this name now; undefined if there is none. */
const identityOf = (name: string) =>
  statSync(join(directory, name), { bigint: true, throwIfNoEntry: false })?.ino

const own = openLock(lockFiles.watcher)
const users = openLock(lockFiles.users)
const starting = openLock(lockFiles.start)
const usersFile = identityOf(lockFiles.users)
let idleChecks = 0

const hasUsers = (): boolean => {
  const isFree = users.acquire()
  if (isFree) users.release()
  return !isFree
}

const check = async (): Promise<void> => {
  // The data directory was removed, and perhaps made again: another watcher has the new one.
  if (identityOf(lockFiles.users) !== usersFile) process.exit()
  idleChecks = hasUsers() ? 0 : idleChecks + 1
  const port = serverPort()
  // Who stops the server removes a temporary directory after that, unless it is killed in between.
  const isStopped = port === undefined && !isTemporary
  if (!(isStopped || idleChecks > checks) || !starting.acquire()) return
  try {
    if (port !== serverPort() || hasUsers()) return
    const isDown = port === undefined || !(await listens(port)) || stopServer()
    if (isDown && isTemporary) rmSync(directory, { recursive: true, force: true })
    if (isDown) process.exit()
    idleChecks = 0
  } finally {
    starting.release()
  }
}

if (!own.acquire()) process.exit()
// The handler also keeps the lock from the garbage collector.
process.once("exit", own.release)
setInterval(() => void check(), Number(idle) / checks)
