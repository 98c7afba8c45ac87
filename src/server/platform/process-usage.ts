/** CPU time and memory of a process, from `/proc`. */
import { readFileSync } from "node:fs"

export interface ProcessUsage {
  /** User and system time since the start, in steps of 10 ms. */
  readonly cpuMillis: number
  readonly memoryBytes: number
}

/** Linux counts in hundredths of a second, on every platform that Node runs on. */
const tickMillis = 10
const pageBytes = 4096

/** Positions in `/proc/<pid>/stat` after the name of the program, which may contain spaces. */
const fields = { userTicks: 11, systemTicks: 12, pages: 21 } as const

/** Parses `/proc/<pid>/stat`. */
export const parseStat = (text: string): ProcessUsage => {
  const values = text.slice(text.lastIndexOf(")") + 2).split(" ")
  const at = (index: number): number => Number(values[index] ?? 0)
  return {
    cpuMillis: (at(fields.userTicks) + at(fields.systemTicks)) * tickMillis,
    memoryBytes: at(fields.pages) * pageBytes
  }
}

/** Reads the usage of a process; undefined if it has ended. */
export const readUsage = (pid: number): ProcessUsage | undefined => {
  try {
    return parseStat(readFileSync(`/proc/${pid}/stat`, "latin1"))
  } catch {
    return undefined
  }
}

const watchMillis = 50

/** Calls `onOver` once when a process has used this much CPU time; returns what ends the watch. */
export const watchCpu = (pid: number, maxMillis: number, onOver: () => void): (() => void) => {
  const timer = setInterval(() => {
    if ((readUsage(pid)?.cpuMillis ?? 0) < maxMillis) return
    clearInterval(timer)
    onOver()
  }, watchMillis)
  return () => clearInterval(timer)
}
