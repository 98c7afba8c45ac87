/**
 * Slows a process down to a share of a core: with a CPU quota where a cgroup can be made, else with processes
 * that compete for its core.
 */
import { chmodSync, existsSync, mkdirSync, rmdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { launch, stop } from "./process.ts"

/** Period of the quota: short, so that the process is slow all the time instead of paused. */
const periodMicros = 10_000
const cgroups = "/sys/fs/cgroup"

export interface SlowCore {
  readonly how: "full speed" | "CPU quota" | "competing processes"
  /** Runs Node slowly; undefined: the usual Node, whose core is shared. */
  readonly executable: string | undefined
  readonly stop: () => Promise<void>
}

/** A new cgroup with a quota of a core's share; undefined where this process may not make one. */
function makeQuota(factor: number): string | undefined {
  const isV1 = existsSync(join(cgroups, "cpu/cpu.cfs_quota_us"))
  const folder = join(cgroups, isV1 ? "cpu" : ".", `svc-bench-${process.pid}`)
  const quota = Math.round(periodMicros / factor)
  try {
    mkdirSync(folder)
    if (isV1) {
      writeFileSync(join(folder, "cpu.cfs_period_us"), String(periodMicros))
      writeFileSync(join(folder, "cpu.cfs_quota_us"), String(quota))
    } else {
      writeFileSync(join(folder, "cpu.max"), `${quota} ${periodMicros}`)
    }
    return folder
  } catch {
    if (existsSync(folder)) rmdirSync(folder)
    return undefined
  }
}

const spinner = "data:text/javascript,for(;;);"

/** Makes the core `factor` times slower for what runs with the executable. */
export function slowDown(
  core: number | undefined,
  factor: number,
  scratchFolder: string
): SlowCore {
  if (factor <= 1) {
    return { how: "full speed", executable: undefined, stop: () => Promise.resolve() }
  }
  const folder = makeQuota(factor)
  if (folder === undefined) {
    if (core === undefined) throw new Error("no core can be slowed: this needs cgroups or taskset")
    const spinners = Array.from({ length: Math.round(factor) - 1 }, () =>
      launch({ script: "", nodeArgs: ["--import", spinner], args: [], core })
    )
    return {
      how: "competing processes",
      executable: undefined,
      stop: async () => {
        for (const child of spinners) await stop(child)
      }
    }
  }
  const executable = join(scratchFolder, "slow-node")
  const procs = join(folder, "cgroup.procs")
  writeFileSync(executable, `#!/bin/sh\necho $$ > ${procs}\nexec "${process.execPath}" "$@"\n`)
  chmodSync(executable, 0o755)
  // The group can be removed once the last process in it has ended.
  return { how: "CPU quota", executable, stop: () => Promise.resolve(rmdirSync(folder)) }
}
