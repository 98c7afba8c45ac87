/** Commands that reach a room too late: a member has moved, or the command was executed before. */
import type { RoomInput } from "./messages.ts"
import type { RoomState } from "./model.ts"

/**
 * Whether the member has moved to another node: commands from this one come too late. An absent
 * member may still leave.
 */
export const isElsewhere = (
  state: RoomState | undefined,
  node: string,
  { playerId, t }: RoomInput["command"]
): boolean => {
  if (t === "join" || t === "resume" || t === "disconnect") return false
  const member = state?.members.get(playerId)
  if (member === undefined || (member.attachment === null && t === "leave")) return false
  return member.attachment?.node !== node
}

/**
 * Whether a command that was executed before can be executed again, and then only restores its
 * effect. A member may have come in again, or have left, meanwhile. So a join takes no second seat,
 * and a leave frees only the seat that its own connection holds.
 */
export const isRestorable = (
  state: RoomState | undefined,
  command: RoomInput["command"]
): boolean => {
  const member = state?.members.get(command.playerId)
  switch (command.t) {
    case "join":
      return member !== undefined
    case "leave":
      return (
        command.connectionId !== undefined &&
        member?.attachment?.connectionId === command.connectionId
      )
    case "resume":
    case "disconnect":
    case "iceTransport":
      return true
    default:
      return false
  }
}
