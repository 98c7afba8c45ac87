/** Error codes of realtime channels. */
import { Schema } from "effect"
import { coded, detailed } from "./wire.ts"

/**
 * The channel admits only invited players, or the player's age band admits only server-made channels.
 * Ask the owner for an invitation.
 */
export class ChannelForbidden extends coded<ChannelForbidden>()(
  "channel_forbidden",
  403,
  "This player may not join the channel."
) {}

/** The player is banned from the channel. `until` is ISO 8601 UTC; null: until the ban is undone. */
export class ChannelBanned extends detailed<ChannelBanned>()(
  "channel_banned",
  403,
  "This player is banned from the channel.",
  { until: Schema.NullOr(Schema.String) }
) {}

/** The channel has its maximum of members, or of anonymous listeners. Retry later. */
export class ChannelFull extends coded<ChannelFull>()(
  "channel_full",
  409,
  "The channel is full."
) {}

/** A connection can be in eight channels. Leave one first. */
export class TooManyChannels extends detailed<TooManyChannels>()(
  "too_many_channels",
  409,
  "This connection is in the maximum number of channels.",
  { limit: Schema.Int }
) {}

/** The environment already has a channel of this name. Join it, or choose another name. */
export class ChannelExists extends coded<ChannelExists>()(
  "channel_exists",
  409,
  "A channel of this name exists."
) {}

/** The connection is not in this channel. Join it first. */
export class NotInChannel extends coded<NotInChannel>()(
  "not_in_channel",
  409,
  "Join the channel first."
) {}

/** The player is muted in this channel. `until` is ISO 8601 UTC; null: until the mute is undone. */
export class Muted extends detailed<Muted>()("muted", 403, "This player is muted here.", {
  until: Schema.NullOr(Schema.String)
}) {}

/** Only speakers, or only the server, may send in this channel. */
export class SendForbidden extends coded<SendForbidden>()(
  "send_forbidden",
  403,
  "This player may not send in this channel."
) {}

/** Only the channel's owner may do this. Server-managed channels have no owner: use the server API. */
export class OwnerOnly extends coded<OwnerOnly>()(
  "owner_only",
  403,
  "Only the channel's owner may do this."
) {}

/** Voice is limited to 100 members, peer to peer to 8. Lower `maxMembers`, or choose `sfu`. */
export class VoiceTooLarge extends detailed<VoiceTooLarge>()(
  "voice_too_large",
  400,
  "The channel has more members than a voice call allows.",
  { limit: Schema.Int }
) {}

/** The list has 1000 players. Remove one first. */
export class ChannelListFull extends detailed<ChannelListFull>()(
  "channel_list_full",
  409,
  "The channel's list is full.",
  { limit: Schema.Int }
) {}

/** The environment has no such channel. */
export class ChannelNotFound extends coded<ChannelNotFound>()(
  "channel_not_found",
  404,
  "There is no such channel."
) {}
