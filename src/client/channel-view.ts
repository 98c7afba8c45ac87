/**
 * Reducer for the view of a channel: `channel_joined`, and each later event applied to it. Pure. Every
 * change makes a new object, so `===` detects changes.
 */
import type { ChannelEvent, ChannelPlayer, ChannelSettings } from "./wire.ts"

export interface ChannelView {
  readonly settings: ChannelSettings
  readonly members: ReadonlyArray<ChannelPlayer>
  readonly canSend: boolean
  readonly mutedUntil: string | null
}

type Joined = Extract<ChannelEvent, { readonly t: "channel_joined" }>

/** The view after joining. */
export const viewOf = ({ canSend, channel, members, mutedUntil }: Joined): ChannelView => ({
  settings: channel,
  members,
  canSend,
  mutedUntil
})

const without = (
  members: ReadonlyArray<ChannelPlayer>,
  ids: ReadonlySet<string>
): ReadonlyArray<ChannelPlayer> => members.filter(({ id }) => !ids.has(id))

/** Applies leaves before joins. A joining player may already be a member. */
const withMembers = (
  view: ChannelView,
  left: ReadonlyArray<string>,
  joined: ReadonlyArray<ChannelPlayer>
): ChannelView => {
  const replaced = new Set([...left, ...joined.map(({ id }) => id)])
  return { ...view, members: [...without(view.members, replaced), ...joined] }
}

/** Returns the view after an event. */
export const applyChannelEvent = (view: ChannelView, event: ChannelEvent): ChannelView => {
  switch (event.t) {
    case "channel_joined":
      return viewOf(event)
    case "channel_player_joined":
      return withMembers(view, [], [event.player])
    case "channel_player_left":
      return withMembers(view, [event.playerId], [])
    case "channel_players":
      return withMembers(
        view,
        event.left.map(({ playerId }) => playerId),
        event.joined
      )
    case "player_updated":
      return {
        ...view,
        members: view.members.map((member) =>
          member.id === event.player.id ? { ...member, ...event.player } : member
        )
      }
    case "channel_changed":
      return { ...view, settings: event.channel }
    case "channel_self":
      return { ...view, canSend: event.canSend, mutedUntil: event.mutedUntil }
    // Among them those of newer services.
    default:
      return view
  }
}
