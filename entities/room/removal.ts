/** Removal of a player from a room, together with the bar against its return. Pure. */
import { roomLimits } from "#rpc/rooms/limits"
import type { RemovedReason } from "#rpc/rooms/authority"
import type { RoomEvent } from "#rpc/rooms/events"
import { withBar } from "./bars.ts"
import { type Decision, type Emission, iso, type Member, type RoomState } from "./model.ts"
import { remove } from "./seats.ts"

const seconds = 1000

const removed = (
  roomId: string,
  reason: RemovedReason,
  end: number | null,
  cause?: string
): RoomEvent => ({
  t: "removed",
  roomId,
  reason,
  until: end === null ? null : iso(end),
  ...(cause === undefined ? {} : { cause })
})

/**
 * Events for a player without a seat who missed its end: the removal, while the room remembers its bar,
 * or else the loss of the room.
 */
export const missedEnd = (
  { rights, settings }: RoomState,
  playerId: string
): ReadonlyArray<RoomEvent> => {
  const end = rights.bars.get(playerId)
  if (end === undefined) return [{ t: "room_closed", roomId: settings.id, reason: "lost" }]
  return [
    removed(settings.id, end === null ? "banned" : "kicked", end),
    { t: "player_left", playerId, reason: "kicked" }
  ]
}

interface Removal {
  readonly reason: RemovedReason
  /** Key of the game that the player receives. */
  readonly cause?: string
}

/** End of the bar of a removal, Unix milliseconds; null for the room's life. */
export const barEnd = (reason: RemovedReason, now: number): number | null =>
  reason === "banned" ? null : now + roomLimits.kickBarSeconds * seconds

/**
 * Removes a member and bars it, in one step: no failure comes between. The member learns of it before
 * everybody else, and receives no later event.
 */
export const removeAndBar = (
  state: RoomState,
  member: Member,
  { cause, reason }: Removal,
  now: number
): Decision => {
  const end = barEnd(reason, now)
  const barred = { ...state, rights: withBar(state.rights, member.id, end) }
  const notice: Emission = {
    event: removed(state.settings.id, reason, end, cause),
    to: [member.id],
    except: null,
    membership: null
  }
  const removal = remove(barred, member, "kicked")
  return { ...removal, emissions: [notice, ...removal.emissions] }
}
