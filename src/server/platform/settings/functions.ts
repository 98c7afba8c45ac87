/** Settings of the processes that run functions, and of what the functions of an environment may use. */
import { functions } from "#rpc/functions/limits"
import {
  functionCpu,
  functionRuntime,
  functionSnapshots,
  functionStorage
} from "#rpc/functions/runtime-limits"
import { setting } from "./table.ts"
import { inUnits, mebibyte, whole } from "./values.ts"

export const functionProcesses = {
  processes: setting("SVC_FUNCTIONS_PROCESSES", whole(0, 10_000), 32)`
    Most environments whose functions run at once on this runner, each in a process of its own; the one that has been
    idle longest makes room. 0: this runner runs none.`,
  memoryBytes: setting("SVC_FUNCTIONS_MEMORY_MB", inUnits(mebibyte, whole(128, 16_384)), 256)`
    Memory, in MiB, at which the process of an environment's functions is ended.`,
  snapshotSeconds: setting(
    "SVC_FUNCTIONS_SNAPSHOT_SECONDS",
    whole(0, 86_400),
    functionSnapshots.secondsDefault
  )`
    Seconds between two snapshots of what the functions of an environment store, while it changes. They are taken
    where the service has several runners. 0: never, for runners that share their data directory. See
    [functions](../guides/functions.md#snapshots).`
}

export const functionBounds = {
  storageBytes: setting(
    "SVC_FUNCTIONS_STORAGE_MB",
    inUnits(mebibyte, whole(0, 1024 * 1024)),
    functionStorage.megabytesDefault
  )`
    Most MiB that the functions of an environment store on disk. Beyond it bindings refuse to add; a quarter (at least
    16 MiB) beyond it the code is stopped. 0: no limit.`,
  diskReserveBytes: setting(
    "SVC_FUNCTIONS_DISK_RESERVE_MB",
    inUnits(mebibyte, whole(0, 1024 * 1024)),
    functionStorage.reserveMegabytesDefault
  )`
    MiB of the disk of the data directory that functions leave free. With less, no environment may add to what it
    stores. 0: none.`,
  cpuMillisPerMinute: setting(
    "SVC_FUNCTIONS_CPU_SECONDS_PER_MINUTE",
    inUnits(1000, whole(0, functionCpu.secondsPerMinuteMax)),
    functionCpu.secondsPerMinuteDefault
  )`
    Seconds of CPU time that the functions of an environment may use in a minute, whatever uses them. Beyond it calls
    are refused until time has repaid it. 0: no limit.`,
  cpuMillisMax: setting(
    "SVC_FUNCTIONS_CPU_MS_MAX",
    whole(1, functions.cpuMillisMax),
    functions.cpuMillisMax
  )`
    Greatest \`cpuMs\`, in milliseconds, that the functions of an environment get.`,
  callsMax: setting(
    "SVC_FUNCTIONS_CALLS",
    whole(1, functionRuntime.callsMax),
    functionRuntime.callsMax
  )`
    Most calls of an environment's functions under way; further ones get 503.`
}
