/** Commands that reach a channel too late: a member has moved, or the command was executed before. */
import { toWire, Unavailable, type WireError } from "#rpc/errors/codes"
import type { LinkCommands } from "../executed-commands.ts"
import { type ChannelState, memberOf } from "./model.ts"
import type { ChannelInput, GatewayCommand } from "./messages.ts"

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
 * Returns the outcome of a command that was executed before, or undefined if it must be executed
 * again. Moderation is never executed again, since other moderation may have followed it. A leave
 * runs again only while its own connection holds the seat, so it never frees the seat of a newer
 * one. A join must not bring back a member that has left since. Members are not stored, so only the
 * activation that executed the join knows that.
 */
export const replayOf = (
  state: ChannelState | undefined,
  { command, seq }: ChannelInput,
  link: LinkCommands
): { readonly error: WireError | undefined } | undefined => {
  if (command.t === "moderate") return { error: link.errorOf(seq) }
  if (command.t !== "leave" && command.t !== "join") return undefined
  const member = state && memberOf(state, command.playerId)
  if (command.t === "leave") {
    const isHeld = member?.attachment?.connectionId === command.connectionId
    return isHeld ? undefined : { error: link.errorOf(seq) }
  }
  if (member !== undefined || !link.wasExecutedHere(seq)) return undefined
  return { error: link.errorOf(seq) ?? toWire(new Unavailable()) }
}

export const isKick = (command: GatewayCommand): boolean =>
  command.t === "moderate" && command.op === "kick"
