/** Dependencies of a room actor on its process. */
import type { CloseReason } from "#rpc/rooms/events"
import type { ActivationRuntime } from "../activation.ts"

export interface RoomRuntime extends ActivationRuntime {
  /** Clocks that measure how long a change waits for its snapshot, see `PendingWrites`. */
  readonly clocks: ReadonlyArray<() => number>
  /** Requests an early flush: replies wait for the write of the state or the removal of the row. */
  readonly flushSoon: () => void
  /** Whether another node could activate the room while it lives here. */
  readonly shared: boolean
  /** Reports that the room has closed. */
  readonly closed: (reason: CloseReason) => void
}
