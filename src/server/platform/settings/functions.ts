/** Settings of the processes that run functions. */
import { Schema } from "effect"
import { functionCpu, functionRuntime } from "#rpc/function-runtime-limits"
import { functions } from "#rpc/limits"
import { whole } from "./values.ts"

export interface FunctionSettings {
  /** Processes that may live at once on this runner; 0: it runs none. */
  readonly processes: number
  /** Memory at which a process is ended. */
  readonly memoryBytes: number
  /** Bytes on disk beyond which an environment stores no more; 0: there is no limit. */
  readonly storageBytes: number
  /** Bytes of the disk that functions leave free; 0: none. */
  readonly diskReserveBytes: number
  /** CPU time of an environment in a minute, whatever uses it; 0: there is no limit. */
  readonly cpuMillisPerMinute: number
  /** Greatest CPU time of one call that an environment may set. */
  readonly cpuMillisMax: number
  /** Calls of an environment under way. */
  readonly callsMax: number
  /** Seconds between two snapshots of data that changes; 0: there are none. */
  readonly snapshotSeconds: number
}

export const functionVariables = {
  SVC_FUNCTIONS_PROCESSES: whole(0, 10_000),
  SVC_FUNCTIONS_MEMORY_MB: whole(128, 16_384),
  SVC_FUNCTIONS_STORAGE_MB: whole(0, 1024 * 1024),
  SVC_FUNCTIONS_DISK_RESERVE_MB: whole(0, 1024 * 1024),
  SVC_FUNCTIONS_CPU_SECONDS_PER_MINUTE: whole(0, functionCpu.secondsPerMinuteMax),
  SVC_FUNCTIONS_CPU_MS_MAX: whole(1, functions.cpuMillisMax),
  SVC_FUNCTIONS_CALLS: whole(1, functionRuntime.callsMax),
  SVC_FUNCTIONS_SNAPSHOT_SECONDS: whole(0, 86_400)
}

const Variables = Schema.Struct(functionVariables)

const mebibyte = 1024 * 1024

export const functionsOf = (env: typeof Variables.Type): FunctionSettings => ({
  processes: env.SVC_FUNCTIONS_PROCESSES,
  memoryBytes: env.SVC_FUNCTIONS_MEMORY_MB * mebibyte,
  storageBytes: env.SVC_FUNCTIONS_STORAGE_MB * mebibyte,
  diskReserveBytes: env.SVC_FUNCTIONS_DISK_RESERVE_MB * mebibyte,
  cpuMillisPerMinute: env.SVC_FUNCTIONS_CPU_SECONDS_PER_MINUTE * 1000,
  cpuMillisMax: env.SVC_FUNCTIONS_CPU_MS_MAX,
  callsMax: env.SVC_FUNCTIONS_CALLS,
  snapshotSeconds: env.SVC_FUNCTIONS_SNAPSHOT_SECONDS
})
