/**
 * Child processes of the benchmark: pinned to a core, measured, and always stopped.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { setInterval } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { freePort as findFreePort } from "#server/platform/settings/free-port"
import { pinned } from "./cores.ts"
import type { Target } from "../wire/protocol.ts"

const readyTimeoutMs = 60_000
const stopTimeoutMs = 15_000
/** USER_HZ, the unit of /proc/<pid>/stat: part of the kernel's ABI, 100 on every common platform. */
const ticksPerSecond = 100
const hasProc = existsSync("/proc/self/stat")
const cpuReporter = fileURLToPath(new URL("./cpu-reporter.ts", import.meta.url))

const running = new Set<ChildProcess>()
process.once("exit", () => running.forEach((child) => child.kill("SIGTERM")))
process.once("SIGINT", () => process.exit(130))
process.once("SIGTERM", () => process.exit(143))

export interface RunningServer {
  readonly target: Target
  /** The process whose CPU is measured; its database is not included. */
  readonly pid: number
  /** User and system time of that process, all its threads, in microseconds. */
  readonly cpuMicros: () => Promise<number>
  readonly stop: () => Promise<void>
}

export interface Launch {
  readonly script: string
  /** Runs the script instead of this Node. */
  readonly executable?: string
  readonly nodeArgs?: ReadonlyArray<string>
  readonly args: ReadonlyArray<string>
  /** The core to run on; without one the scheduler decides. */
  readonly core: number | undefined
  /** Replaces the inherited environment. */
  readonly env?: Readonly<Record<string, string | undefined>>
}

/** Starts a script with an IPC channel; its log output is discarded. */
export function launch(options: Launch): ChildProcess {
  const { args, core, env, executable = process.execPath, nodeArgs = [], script } = options
  const node = [executable, ...nodeArgs, script, ...args]
  const [command = process.execPath, ...rest] = pinned(core, node)
  const child = spawn(command, rest, {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
    ...(env === undefined ? {} : { env })
  })
  running.add(child)
  child.once("exit", () => running.delete(child))
  child.on("error", () => running.delete(child))
  return child
}

/** SIGTERM, then SIGKILL when that does not help. */
export async function stop(child: ChildProcess): Promise<void> {
  if (!running.has(child)) return
  const exited = once(child, "exit")
  child.kill("SIGTERM")
  const kill = setTimeout(() => child.kill("SIGKILL"), stopTimeoutMs)
  await exited
  clearTimeout(kill)
}

export interface ServerLaunch extends Omit<Launch, "args" | "nodeArgs"> {
  readonly port: number
  readonly args?: ReadonlyArray<string>
}

/** Launches a server and waits until `GET /readyz` on its port answers 200. */
export async function launchServer(options: ServerLaunch): Promise<RunningServer> {
  const nodeArgs = hasProc ? [] : ["--import", cpuReporter]
  const child = launch({ args: [], ...options, nodeArgs })
  const url = `http://127.0.0.1:${options.port}`
  try {
    await ready(child, url)
  } catch (error) {
    await stop(child)
    throw error
  }
  const pid = child.pid
  if (pid === undefined) throw new Error(`${options.script} has no process id`)
  return {
    target: { url, key: "" },
    pid,
    cpuMicros: () => (hasProc ? cpuFromProc(pid) : cpuFromReporter(child)),
    stop: () => stop(child)
  }
}

export const freePort = (): Promise<number> => Effect.runPromise(findFreePort("127.0.0.1"))

async function ready(child: ChildProcess, url: string): Promise<void> {
  const deadline = performance.now() + readyTimeoutMs
  for await (const starting of setInterval(50, child)) {
    if (!running.has(starting)) throw new Error(`the server for ${url} ended before it was ready`)
    const status = await fetch(`${url}/readyz`).then(
      (response) => response.status,
      () => 0
    )
    if (status === 200) return
    if (performance.now() > deadline) break
  }
  throw new Error(`${url}/readyz did not answer 200 within ${readyTimeoutMs} ms`)
}

/** utime + stime, fields 14 and 15; counted from the last `)`, since a name may hold spaces. */
async function cpuFromProc(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8")
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  return (Number(fields[11]) + Number(fields[12])) * (1_000_000 / ticksPerSecond)
}

/** CPU time of everything on this machine, in microseconds; nothing without /proc. */
export async function machineMicros(): Promise<number | undefined> {
  if (!hasProc) return undefined
  const stat = await readFile("/proc/stat", "utf8")
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = stat
    .slice(3, stat.indexOf("\n"))
    .trim()
    .split(/\s+/)
    .map(Number)
  return (user + nice + system + irq + softirq) * (1_000_000 / ticksPerSecond)
}

async function cpuFromReporter(child: ChildProcess): Promise<number> {
  const answer = once(child, "message")
  child.send("cpuUsage")
  const [micros] = await answer
  return Number(micros)
}
