/** Dependencies of a room actor on its process. */
import type { CloseReason } from "#rpc/rooms"
import type { MemberReports } from "../local-actors.ts"

export interface RoomRuntime extends MemberReports {
  readonly now: () => number
  /** Clocks that measure how long a change waits for its snapshot, see `PendingWrites`. */
  readonly clocks: ReadonlyArray<() => number>
  /** Whether this process surely still owns the room's shard. */
  readonly hasLease: () => boolean
  /** Since when players of the environment wait for admission, which holds graces; null: nobody waits. */
  readonly heldFrom: (environmentId: string) => number | null
  /** Calls `tick` at this time (Unix milliseconds), or earlier. */
  readonly wakeAt: (millis: number) => void
  /** Reports a change of the state, which needs a snapshot. */
  readonly changed: () => void
  /** Requests an early flush: replies wait for the write of the state or the removal of the row. */
  readonly flushSoon: () => void
  /** Whether another node could activate the room while it lives here. */
  readonly shared: boolean
  /** Reports that the room has closed. */
  readonly closed: (reason: CloseReason) => void
}
