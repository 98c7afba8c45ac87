/** When load is offered: so many at a time, or at times fixed in advance. */
import { setTimeout as wait } from "node:timers/promises"

/** Does `task` for 0 to `count - 1`, at most `limit` of them at a time. */
export async function inFlight(
  count: number,
  limit: number,
  task: (index: number) => Promise<void>
): Promise<void> {
  let next = 0
  const lane = async (): Promise<void> => {
    while (next < count) await task(next++)
  }
  await Promise.all(Array.from({ length: Math.min(limit, count) }, lane))
}

/** Does `task` for 0 to `count - 1`, each at its time whether or not the others are done. */
export async function openLoop(
  count: number,
  perSecond: number,
  task: (index: number, dueAt: number) => Promise<void>
): Promise<void> {
  const start = performance.now() + 1
  const dueAt = (index: number): number => start + (index * 1000) / perSecond
  const tasks: Array<Promise<void>> = []
  while (tasks.length < count) {
    while (tasks.length < count && dueAt(tasks.length) <= performance.now()) {
      tasks.push(task(tasks.length, dueAt(tasks.length)))
    }
    await wait(1)
  }
  await Promise.all(tasks)
}

/** What `work` took of this process's core, in percent of it. */
export async function busyPercent(work: () => Promise<void>): Promise<number> {
  const started = performance.now()
  const before = process.cpuUsage()
  await work()
  const { system, user } = process.cpuUsage(before)
  return ((system + user) / 1000 / (performance.now() - started)) * 100
}
