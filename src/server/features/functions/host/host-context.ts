/** Context shared by the function hosts of a runner. */
import type { Programs } from "#server/platform/workerd/programs"
import type { Compiler } from "../compiler/compiler.ts"
import type { DataDirectories } from "./directories.ts"
import type { DiskSpace } from "./disk-space.ts"
import type { Looks } from "./storage-use.ts"

export interface HostContext {
  readonly programs: Programs
  readonly compiler: Compiler
  readonly directories: DataDirectories
  readonly runtimeDate: string
  readonly memoryBytes: number
  /** Storage limit in bytes, beyond which databases, KV and files refuse writes. 0 means no limit. */
  readonly storageBytes: number
  readonly diskSpace: DiskSpace
  readonly looks: Looks
  /** Called when the storage of an environment cannot be measured or compacted. */
  readonly onStorageFailure: (error: unknown) => void
  /** CPU time of an environment in a minute; 0 means no limit. */
  readonly cpuMillisPerMinute: number
  /** Greatest CPU time of a call that an environment may set. */
  readonly cpuMillisMax: number
  /** Calls of an environment under way. */
  readonly callsMax: number
  readonly deniedAddresses: ReadonlyArray<string>
  readonly now: () => number
  /** Returns milliseconds since 1970. */
  readonly wallClock: () => number
  /** Waits for a slot to start a process; returns a function that releases the slot. */
  readonly acquireStartSlot: () => Promise<() => void>
}
