/**
 * Pauses a process for milliseconds, so that its files are seen at one moment. It must not find out: what it
 * has acknowledged is in its files, and what it is doing goes on afterwards.
 */
import { readdirSync, readFileSync } from "node:fs"

/** The process cannot be paused now; try again. */
export class NotPaused extends Error {}

/** How often the state of the threads is read: each takes microseconds. */
const looksMax = 2000

/** Whether all threads are stopped. A thread that waits for the disk stops a moment later. */
const isStopped = (pid: number): boolean =>
  readdirSync(`/proc/${pid}/task`).every((thread) => {
    const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, "latin1")
    return stat.charAt(stat.lastIndexOf(")") + 2) === "T"
  })

const awaitStopped = (pid: number): void => {
  for (let look = 0; look < looksMax; look += 1) if (isStopped(pid)) return
  throw new NotPaused("the process does not stop")
}

/** Runs the work while the process stands still; without a process, at once. */
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
