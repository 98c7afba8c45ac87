/** View of a channel at a client: `channel_joined`, and each later event applied to it. */
import { assert } from "@effect/vitest"
import type { ChannelEvent, ChannelPlayer, ChannelSettings } from "#rpc/channels/frames"

/** View of a channel at a client. */
export interface View {
  readonly settings: ChannelSettings
  readonly members: ReadonlyMap<string, ChannelPlayer>
  readonly canSend: boolean
  readonly mutedUntil: string | null
}

const updateMembers = (view: View, change: (members: Map<string, ChannelPlayer>) => void): View => {
  const members = new Map(view.members)
  change(members)
  return { ...view, members }
}

/** Applies an event to the view of a client; undefined when the channel has closed. */
export const applyEvent = (view: View | undefined, event: ChannelEvent): View | undefined => {
  if (event.t === "channel_joined") {
    const { canSend, channel: settings, members, mutedUntil } = event
    return { settings, members: new Map(members.map((it) => [it.id, it])), canSend, mutedUntil }
  }
  assert.isDefined(view, "channel_joined arrives before other events")
  if (view === undefined) return undefined
  switch (event.t) {
    case "channel_player_joined":
      assert.isFalse(view.members.has(event.player.id), "a joining player is not a member yet")
      return updateMembers(view, (members) => members.set(event.player.id, event.player))
    case "channel_player_left":
      assert.isTrue(view.members.has(event.playerId), "a leaving player is a member")
      return updateMembers(view, (members) => members.delete(event.playerId))
    case "channel_players":
      return updateMembers(view, (members) => {
        for (const { playerId } of event.left) members.delete(playerId)
        for (const player of event.joined) members.set(player.id, player)
      })
    case "player_updated":
      return updateMembers(view, (members) => {
        const member = members.get(event.player.id)
        // In a large channel its join may come later, with the new name.
        if (member !== undefined) members.set(member.id, { ...member, ...event.player })
      })
    case "channel_changed":
      return { ...view, settings: event.channel }
    case "channel_self":
      return { ...view, canSend: event.canSend, mutedUntil: event.mutedUntil }
    case "channel_message":
      return view
    case "channel_closed":
      return undefined
  }
}
