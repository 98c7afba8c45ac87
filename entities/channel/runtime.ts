/** What a channel actor needs of its process. */
import type { StoredLink } from "../executed-commands.ts"
import type { MemberReports } from "../local-actors.ts"
import type { ChannelState } from "./model.ts"

export interface ChannelRuntime extends MemberReports {
  readonly now: () => number
  /** Whether this process surely still owns the channel's shard. */
  readonly hasLease: () => boolean
  /** Calls `tick` at this time (Unix milliseconds), or earlier. */
  readonly wakeAt: (millis: number) => void
  /** Calls `flush` after the flush window. */
  readonly flushSoon: () => void
  /** The stored part of the channel has changed. */
  readonly changed: () => void
  /** The channel has closed. */
  readonly closed: () => void
}

/** What an actor begins with. */
export interface ChannelActorOptions {
  readonly id: string
  readonly name: string
  readonly epoch: number
  readonly state: ChannelState | undefined
  readonly runtime: ChannelRuntime
  readonly links?: ReadonlyArray<StoredLink>
}
