/** What calls leave in the processes that carry them, read from Linux: connections and sockets. */
import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { setTimeout as pause } from "node:timers/promises"
import { processStats } from "../../chaos/process-stats.ts"
import type { PassingWorld } from "./recorded-function.ts"

/** Kernel states of a connection whose other side may not know that it has ended. */
const openStates = new Set(["01", "08"])

/** One end of a TCP connection. */
interface End {
  readonly local: number
  readonly remote: number
  readonly state: string
  /** Whether a process holds it. */
  readonly isHeld: boolean
}

const portOf = (address: string): number => Number.parseInt(address.split(":").at(-1) ?? "", 16)

const ends = (): ReadonlyArray<End> =>
  ["/proc/net/tcp", "/proc/net/tcp6"]
    .flatMap((path) => readFileSync(path, "utf8").trim().split("\n").slice(1))
    .map((line) => {
      const [, local = "", remote = "", state = "", , , , , , inode] = line.trim().split(/\s+/)
      return { local: portOf(local), remote: portOf(remote), state, isHeld: inode !== "0" }
    })

/**
 * Counts the connections that are open at a port of this machine although their clients have gone. A
 * port of a client says nothing: another connection may have it by now.
 */
const abandonedConnections = (port: number): number => {
  const all = ends()
  const held = new Set(all.filter((end) => end.isHeld).map((end) => `${end.local} ${end.remote}`))
  return all.filter(
    ({ local, remote, state }) =>
      local === port && openStates.has(state) && !held.has(`${remote} ${local}`)
  ).length
}

interface FunctionProcess {
  readonly pid: number
  /** Path of the socket at which the service calls it. */
  readonly path: string
}

/** Returns the processes of functions below a runner. */
export const functionProcesses = (runner: number): ReadonlyArray<FunctionProcess> => {
  const { stdout } = spawnSync("ps", ["-A", "-ww", "-o", "pid=,ppid=,args="], { encoding: "utf8" })
  const parents = new Map<number, number>()
  const processes: Array<FunctionProcess> = []
  for (const line of stdout.split("\n")) {
    const [pid, parent] = line.trim().split(/\s+/, 2)
    parents.set(Number(pid), Number(parent))
    const [, path] = / --socket-addr=main=unix:(\S+)/.exec(line) ?? []
    if (path !== undefined) processes.push({ pid: Number(pid), path })
  }
  const isBelow = (pid: number): boolean =>
    pid === runner || (parents.has(pid) && isBelow(parents.get(pid) ?? 0))
  return processes.filter(({ pid }) => isBelow(pid))
}

/** Kernel state of a Unix socket that is connected. */
const connected = "03"

/** Counts the connections of the service to processes of functions. */
const connectionsTo = (processes: ReadonlyArray<FunctionProcess>): number => {
  const paths = new Set(processes.map(({ path }) => path))
  return readFileSync("/proc/net/unix", "utf8")
    .split("\n")
    .filter((line) => {
      const [, , , , , state, , path = ""] = line.trim().split(/\s+/)
      return state === connected && paths.has(path)
    }).length
}

const runnersOf = ({ first, second }: PassingWorld) => [first, second]

/** Counts the sockets, timers and files of each runner. */
export const handlesOf = async (world: PassingWorld): Promise<ReadonlyArray<number>> => {
  const stats = await Promise.all(runnersOf(world).map(({ pid }) => processStats(pid)))
  return stats.map(({ handles }) => handles)
}

/** Connections between runners that are kept for the next call, and timers of the moment. */
const handlesMore = 80
/** Longest wait for the end of a call whose client has gone, and between two looks. */
const patienceMillis = 40_000
const pollMillis = 300

const whatIsLeft = (world: PassingWorld): ReadonlyArray<string> => {
  const left: Array<string> = []
  for (const { node, url } of runnersOf(world)) {
    const connections = abandonedConnections(Number(new URL(url).port))
    if (connections > 0) left.push(`runner ${node} holds ${connections} connections of no client`)
  }
  const calls = connectionsTo(runnersOf(world).flatMap(({ pid }) => functionProcesses(pid)))
  if (calls > 0) left.push(`the service holds ${calls} connections to the function`)
  return left
}

/** Waits until nothing is left over; returns what is after the longest wait. */
export const leftovers = async (
  world: PassingWorld,
  handlesBefore: ReadonlyArray<number>
): Promise<ReadonlyArray<string>> => {
  let left = whatIsLeft(world)
  for (let waited = 0; left.length > 0 && waited < patienceMillis; waited += pollMillis) {
    await pause(pollMillis)
    left = whatIsLeft(world)
  }
  const handles = (await handlesOf(world)).flatMap((now, index) => {
    const more = now - (handlesBefore[index] ?? 0)
    return more > handlesMore ? [`runner ${index + 1} holds ${more} more handles`] : []
  })
  return [...left, ...handles]
}
