/** Assigns separate cores to the server and the load generator. */
import { spawnSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"

export interface Cores {
  readonly server: number | undefined
  readonly load: number | undefined
}

const taskset = "taskset"

/** The command that runs `command` on `core` alone, or `command` itself without a core. */
export function pinned(core: number | undefined, command: ReadonlyArray<string>) {
  return core === undefined ? command : [taskset, "--cpu-list", String(core), ...command]
}

/** Two cores this process may use, not two threads of one core if that can be avoided. */
export function pickCores(): Cores {
  const unpinned = { server: undefined, load: undefined }
  if (!existsSync("/proc/self/status") || spawnSync(taskset, ["--version"]).status !== 0) {
    return unpinned
  }
  const status = readFileSync("/proc/self/status", "utf8")
  const allowed = parseList(/^Cpus_allowed_list:\s*(\S+)/m.exec(status)?.[1] ?? "")
  const [server, ...others] = allowed
  if (server === undefined || others.length === 0) return unpinned
  const siblings = threadSiblings(server)
  return { server, load: others.find((core) => !siblings.includes(core)) ?? others[0] }
}

function threadSiblings(core: number): ReadonlyArray<number> {
  const path = `/sys/devices/system/cpu/cpu${core}/topology/thread_siblings_list`
  return existsSync(path) ? parseList(readFileSync(path, "utf8").trim()) : []
}

/** The kernel's list format: `0-3,8`. */
function parseList(list: string): ReadonlyArray<number> {
  return list.split(",").flatMap((range) => {
    const [from = Number.NaN, to = from] = range.split("-").map(Number)
    return Number.isNaN(from) ? [] : Array.from({ length: to - from + 1 }, (_, i) => from + i)
  })
}
