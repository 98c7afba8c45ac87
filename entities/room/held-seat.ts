/** The seat that a room keeps for a player, as the welcome of the next connection reports it. */
import type { HeldSeat } from "#rpc/realtime"
import { iso, type RoomState } from "./model.ts"
import { graceEndOf, isForgotten } from "./absences.ts"

/** The player's seat, or null. `now` in Unix milliseconds. */
export const heldSeat = (state: RoomState, playerId: string, now: number): HeldSeat | null => {
  const member = state.closed === null ? state.members.get(playerId) : undefined
  if (member === undefined || isForgotten(state, member, now)) return null
  const { code, graceSeconds, id: roomId, mode } = state.settings
  const deadline = member.arrived ? null : member.joinDeadline
  const until = graceEndOf(state, member, now) ?? deadline ?? now + graceSeconds * 1000
  return { roomId, code, mode, graceUntil: iso(until) }
}
