/** Dependencies of a channel actor on its process. */
import type { StoredLink } from "../executed-commands.ts"
import type { MemberReports } from "../local-actors.ts"
import type { ChannelState } from "./model.ts"

export interface ChannelRuntime extends MemberReports {
  readonly now: () => number
  /** Whether this process surely still owns the channel's shard. */
  readonly hasLease: () => boolean
  /** Since when players of the environment wait for admission, which holds graces; null: nobody waits. */
  readonly heldFrom: (environmentId: string) => number | null
  /** Calls `tick` at this time (Unix milliseconds), or earlier. */
  readonly wakeAt: (millis: number) => void
  /** Calls `flush` after the flush window. */
  readonly flushSoon: () => void
  /** Reports a change of the stored part of the channel. */
  readonly changed: () => void
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
