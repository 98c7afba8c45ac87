/** Context shared by the function hosts of a runner. */
import type { Programs } from "#server/platform/workerd/programs"
import type { Compiler } from "../compiler/compiler.ts"
import type { DataDirectories } from "./directories.ts"

export interface HostContext {
  readonly programs: Programs
  readonly compiler: Compiler
  readonly directories: DataDirectories
  readonly runtimeDate: string
  readonly memoryBytes: number
  /** Storage limit in bytes, beyond which databases, KV and files refuse writes. 0 means no limit. */
  readonly storageBytes: number
  readonly deniedAddresses: ReadonlyArray<string>
  readonly now: () => number
  /** Returns milliseconds since 1970. */
  readonly wallClock: () => number
  /** Waits for a slot to start a process; returns a function that releases the slot. */
  readonly acquireStartSlot: () => Promise<() => void>
}
