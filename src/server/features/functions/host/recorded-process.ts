/**
 * Names the process that has the data of an environment on this disk. A runner that stands still (SIGSTOP)
 * cannot end its own; the next runner of the machine does, before it opens the same files.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"

const name = "process"
const endMillis = 5000
const lookMillis = 20
/** The time of its start, counted after the name in parentheses. A later process may have the same id. */
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

/** Writes down which process runs. */
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

/** Ends the process that was written down, if it still runs. */
export const endRecorded = async (directory: string): Promise<void> => {
  const [pid, start] = read(directory) ?? []
  if (pid === undefined || start === undefined) return
  const isThere = () => startOf(pid) === start
  if (!isThere()) return
  process.kill(pid, "SIGKILL")
  for (let waited = 0; isThere(); waited += lookMillis) {
    if (waited > endMillis) throw new Error(`Failed to end process ${pid} of a runner before`)
    await delay(lookMillis)
  }
}
