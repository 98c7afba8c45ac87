/** Dependencies of a channel actor on its process. */
import type { ActivationRuntime } from "../activation.ts"
import type { StoredLink } from "../executed-commands.ts"
import type { ChannelState } from "./model.ts"

export interface ChannelRuntime extends ActivationRuntime {
  /** Calls `flush` after the flush window. */
  readonly flushSoon: () => void
  /** Reports that the channel has closed. */
  readonly closed: () => void
}

/** Initial state of a channel actor. */
export interface ChannelActorOptions {
  readonly id: string
  readonly name: string
  readonly epoch: number
  readonly state: ChannelState | undefined
  readonly runtime: ChannelRuntime
  readonly links?: ReadonlyArray<StoredLink>
}
