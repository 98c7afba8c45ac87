/** Error codes of realtime channels (spec section 4.5, decisions 3.9). */
import { Schema } from "effect"
import { coded, detailed } from "./wire.ts"

/** The channel takes only those on its list, or this player's age allows only server-made ones. */
export class ChannelForbidden extends coded<ChannelForbidden>()(
  "channel_forbidden",
  403,
  "This player may not come into the channel."
) {}

/** The player is banned from the channel; `until` is ISO 8601 UTC, null until it is undone. */
export class ChannelBanned extends detailed<ChannelBanned>()(
  "channel_banned",
  403,
  "This player is banned from the channel.",
  { until: Schema.NullOr(Schema.String) }
) {}

/** The channel has as many members as it takes, or an open one as many anonymous listeners. */
export class ChannelFull extends coded<ChannelFull>()(
  "channel_full",
  409,
  "The channel is full."
) {}

/** A connection is in eight channels at most: leave one first. */
export class TooManyChannels extends detailed<TooManyChannels>()(
  "too_many_channels",
  409,
  "This connection is in as many channels as it may be.",
  { limit: Schema.Int }
) {}

/** A channel of this environment has the name. */
export class ChannelExists extends coded<ChannelExists>()(
  "channel_exists",
  409,
  "There is a channel of this name."
) {}

/** The connection is not in this channel: join it first. */
export class NotInChannel extends coded<NotInChannel>()(
  "not_in_channel",
  409,
  "Join the channel first."
) {}

/** The player is muted; `until` is ISO 8601 UTC, null until it is undone. */
export class Muted extends detailed<Muted>()("muted", 403, "This player is muted here.", {
  until: Schema.NullOr(Schema.String)
}) {}

/** Only speakers, or only the server, may send here. */
export class SendForbidden extends coded<SendForbidden>()(
  "send_forbidden",
  403,
  "This player may not send here."
) {}

/** Only the channel's owner may do this; server-managed channels have none. */
export class OwnerOnly extends coded<OwnerOnly>()(
  "owner_only",
  403,
  "Only the channel's owner may do this."
) {}

/** Voice is for 100 people at most, peer to peer for 8: lower `maxMembers`, or ask for `sfu`. */
export class VoiceTooLarge extends detailed<VoiceTooLarge>()(
  "voice_too_large",
  400,
  "The channel takes more members than a voice call can.",
  { limit: Schema.Int }
) {}

/** The list that the player should go on has 1000 entries. */
export class ChannelListFull extends detailed<ChannelListFull>()(
  "channel_list_full",
  409,
  "The channel's list is full.",
  { limit: Schema.Int }
) {}
