/**
 * Record of the process that holds the data of an environment on this disk. A stopped runner (SIGSTOP)
 * cannot end its own process. The next runner of the machine ends it before it opens the same files.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"

const name = "process"
const endMillis = 5000
const lookMillis = 20
/**
 * Position of the process's start time in its stat, counted after the name. It distinguishes the
 * process from a later one with the same id.
 */
const startField = 19

const startOf = (pid: number): string | undefined => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1")
    const [state, ...fields] = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
    return state === "Z" ? undefined : fields[startField - 1]
  } catch {
    return undefined
  }
}

/** Records the running process. */
export const recordProcess = (directory: string, pid: number): void => {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  writeFileSync(join(directory, name), `${pid} ${startOf(pid)}`)
}

const read = (directory: string): readonly [pid: number, start: string | undefined] | undefined => {
  try {
    const [pid, start] = readFileSync(join(directory, name), "utf8").split(" ")
    return [Number(pid), start]
  } catch {
    return undefined
  }
}

/** Ends the recorded process if it still runs. */
export const endRecorded = async (directory: string): Promise<void> => {
  const [pid, start] = read(directory) ?? []
  if (pid === undefined || start === undefined) return
  const isThere = () => startOf(pid) === start
  if (!isThere()) return
  process.kill(pid, "SIGKILL")
  for (let waited = 0; isThere(); waited += lookMillis) {
    if (waited > endMillis) throw new Error(`Failed to end process ${pid} of an earlier runner`)
    await delay(lookMillis)
  }
}
