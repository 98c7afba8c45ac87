/** What all hosts of a runner share. */
import type { Programs } from "#server/platform/workerd/programs"
import type { Compiler } from "../compiler/compiler.ts"
import type { DataDirectories } from "./directories.ts"

export interface HostContext {
  readonly programs: Programs
  readonly compiler: Compiler
  readonly directories: DataDirectories
  readonly runtimeDate: string
  readonly memoryBytes: number
  /** Bytes on disk beyond which databases, KV and files refuse more; 0: there is no limit. */
  readonly storageBytes: number
  readonly deniedAddresses: ReadonlyArray<string>
  readonly now: () => number
  /** Milliseconds since 1970. */
  readonly wallClock: () => number
  /** Waits until the process of another call may be started; returns how to end the turn. */
  readonly takeTurn: () => Promise<() => void>
}
