/** Commands that reach a channel too late: a member has moved, or the command was executed before. */
import type { ChannelState } from "./model.ts"
import { memberOf } from "./model.ts"
import type { GatewayCommand } from "./messages.ts"

/** Whether the member has moved to another node: commands from this one come too late. */
export const isElsewhere = (
  state: ChannelState | undefined,
  node: string,
  command: GatewayCommand
): boolean => {
  if (command.t !== "send" && command.t !== "moderate") return false
  const member = state && memberOf(state, command.playerId)
  return member !== undefined && member.attachment?.node !== node
}

/**
 * Whether a command that was executed before must not be executed again. Moderation must not, since
 * other moderation may have followed it. A leave must not free the seat of a newer connection.
 */
export const isDone = (state: ChannelState | undefined, command: GatewayCommand): boolean => {
  if (command.t === "moderate") return true
  if (command.t !== "leave") return false
  const member = state && memberOf(state, command.playerId)
  return member?.attachment?.connectionId !== command.connectionId
}

export const isKick = (command: GatewayCommand): boolean =>
  command.t === "moderate" && command.op === "kick"
