/**
 * Pauses a process for milliseconds, so that a reader sees its files at one moment. The process does
 * not notice. Its acknowledged writes are in its files, and its work in progress continues afterwards.
 */
import { readdirSync, readFileSync } from "node:fs"

/** Error: the process cannot be paused now; try again. */
export class NotPaused extends Error {}

/** Maximum number of reads of the thread states. Each takes microseconds. */
const looksMax = 2000

/** Whether all threads have stopped. A thread that waits for the disk stops a moment later. */
const isStopped = (pid: number): boolean =>
  readdirSync(`/proc/${pid}/task`).every((thread) => {
    const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, "latin1")
    return stat.charAt(stat.lastIndexOf(")") + 2) === "T"
  })

const awaitStopped = (pid: number): void => {
  for (let look = 0; look < looksMax; look += 1) if (isStopped(pid)) return
  throw new NotPaused("the process does not stop")
}

/** Runs `work` while the process is paused. Without a process, runs it at once. */
export const whilePaused = <A>(pid: number | undefined, work: () => A): A => {
  if (pid === undefined) return work()
  try {
    process.kill(pid, "SIGSTOP")
    awaitStopped(pid)
    return work()
  } catch (error) {
    // The process has ended meanwhile.
    if (error instanceof Error && "code" in error && error.code === "ESRCH") {
      throw new NotPaused("the process has ended")
    }
    throw error
  } finally {
    resume(pid)
  }
}

const resume = (pid: number): void => {
  try {
    process.kill(pid, "SIGCONT")
  } catch {
    // It has ended.
  }
}
