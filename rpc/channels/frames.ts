/**
 * Realtime channels: messages to every member, never stored. Clients create channels whose names begin
 * with `@`; the server API creates and manages any.
 *
 * Timestamps are ISO 8601 UTC, except `at`, which is Unix milliseconds.
 */
import { Schema } from "effect"
import { RpcGroup } from "effect/rpc"
import {
  ChannelBanned,
  ChannelExists,
  ChannelForbidden,
  ChannelFull,
  ChannelListFull,
  ChannelNotFound,
  Muted,
  NotInChannel,
  OwnerOnly,
  PayloadTooLarge,
  SendForbidden,
  TooManyChannels,
  VoiceTooLarge
} from "../errors/codes.ts"
import { PlayerIdText } from "../ids.ts"
import { Done, event, frame } from "../frames.ts"
import { MessageData } from "../json.ts"
import { PlayerName } from "../rooms/events.ts"
import { Timestamp } from "../text.ts"
import { channelLimits } from "./limits.ts"

// Values ---------------------------------------------------------------------------------------

const namePattern = /^@?[a-z0-9][a-z0-9_.:-]{0,62}$/

/** The name of any channel. */
export const ChannelName = Schema.String.check(
  Schema.isPattern(namePattern, {
    message: "Expected a-z 0-9 _ . : - after an optional @, up to 64 characters"
  })
)

/** A name that clients may give to a channel. */
const ClientChannelName = ChannelName.check(
  Schema.isPattern(/^@/, { message: "Expected a name that begins with @" })
)

/** Channel name in a request. A malformed one gets `channel_not_found`. */
export const ChannelReference = Schema.String.check(Schema.isMaxLength(128))

/** Players who may join. `invited`: players on the list `allow`, and the owner. */
export const ChannelJoin = Schema.Literals(["anyone", "invited"])
export type ChannelJoin = typeof ChannelJoin.Type

/** Players who may send. `speakers`: that list and the owner. `server`: only the server API. */
export const ChannelSend = Schema.Literals(["anyone", "speakers", "server"])
export type ChannelSend = typeof ChannelSend.Type

/** The most members of a channel; anonymous listeners do not count. */
export const MaxMembers = Schema.Int.check(
  Schema.isBetween({ minimum: 1, maximum: channelLimits.membersMax })
)

/** Path of a call's media: between players, or through the relay server. */
export const VoiceMode = Schema.Literals(["p2p", "sfu"])

/** Voice calls of a channel. `relayOnly`: peers never see each other's IP address. */
export const ChannelVoice = Schema.Struct({ mode: VoiceMode, relayOnly: Schema.Boolean })
export type ChannelVoice = typeof ChannelVoice.Type

/** The settings of a channel, as members and the server API see them. */
export const ChannelSettings = Schema.Struct({
  name: Schema.String,
  /**
   * Whether the server API made or took over the channel. Then it exists until DELETE and has no owner.
   */
  managed: Schema.Boolean,
  ownerId: Schema.NullOr(Schema.String),
  join: ChannelJoin,
  send: ChannelSend,
  /** Whether anonymous connections may join, and only receive. */
  open: Schema.Boolean,
  maxMembers: MaxMembers,
  voice: Schema.NullOr(ChannelVoice),
  createdAt: Timestamp
})
export type ChannelSettings = typeof ChannelSettings.Type

/** A player in a channel. */
export const ChannelPlayer = Schema.Struct({
  id: Schema.String,
  displayName: Schema.String,
  joinedAt: Timestamp
})
export type ChannelPlayer = typeof ChannelPlayer.Type

/** Moderation actions. `seconds` applies to `mute` and `ban`. */
export const ModerateOp = Schema.Literals([
  "invite",
  "uninvite",
  "allowSend",
  "disallowSend",
  "mute",
  "unmute",
  "kick",
  "ban",
  "unban"
])
export type ModerateOp = typeof ModerateOp.Type

const moderation = {
  op: ModerateOp,
  playerId: PlayerIdText,
  /**
   * Duration of a mute (at most a day) or a ban (at most 366 days). Without it, the action lasts until
   * it is undone.
   */
  seconds: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: channelLimits.banSecondsMax }))
  )
}

const muteInBounds = Schema.makeFilter(
  ({ op, seconds = 1 }: { readonly op: ModerateOp; readonly seconds?: number }) =>
    op === "mute" && seconds > channelLimits.muteSecondsMax
      ? { path: ["seconds"], issue: `Expected at most ${channelLimits.muteSecondsMax} for a mute` }
      : undefined
)

/** A moderation action in the server API. */
export const Moderation = Schema.Struct(moderation).check(muteInBounds)
export type Moderation = typeof Moderation.Type

/** A message; `data` is any JSON of at most 16 KiB. */
export const ChannelMessage = Schema.Struct({
  type: Schema.String.check(Schema.isBetweenLength(1, channelLimits.typeMaxCharacters)),
  data: Schema.optionalKey(MessageData)
})
export type ChannelMessage = typeof ChannelMessage.Type

// Frames ---------------------------------------------------------------------------------------

/** The channel that the connection has joined. */
export const ChannelRef = Schema.Struct({ channel: Schema.String })

/**
 * Joins a channel. `channel_joined` precedes the reply. Anonymous connections can join only channels
 * that the server has opened to them (else `player_required`), and only receive.
 */
export const channelJoin = frame("channelJoin", "Join a channel", {
  payload: { channel: ChannelReference },
  success: ChannelRef,
  errors: [ChannelNotFound, ChannelForbidden, ChannelBanned, ChannelFull, TooManyChannels]
})

/** Creates a channel and joins it as its owner. Without a name, the service generates one. */
export const channelCreate = frame("channelCreate", "Create a channel and join it as its owner", {
  payload: {
    channel: Schema.optionalKey(ClientChannelName),
    join: Schema.optionalKey(ChannelJoin),
    send: Schema.optionalKey(ChannelSend),
    maxMembers: Schema.optionalKey(MaxMembers),
    voice: Schema.optionalKey(
      Schema.Union([Schema.Literal(true), Schema.Struct({ mode: Schema.Literal("sfu") })])
    )
  },
  success: ChannelRef,
  errors: [ChannelExists, ChannelForbidden, VoiceTooLarge, TooManyChannels]
})

/** Leaves a channel. Succeeds for a channel that the connection is not in. */
export const channelLeave = frame("channelLeave", "Leave a channel", {
  payload: { channel: ChannelReference },
  success: Done,
  errors: []
})

/** Sends a message to every member, including the sender; at most ten a second, in bursts of twenty. */
export const channelSend = frame("channelSend", "Send a message to every member of the channel", {
  payload: { channel: ChannelReference, ...ChannelMessage.fields },
  success: Done,
  errors: [NotInChannel, Muted, SendForbidden, PayloadTooLarge]
})

/** Moderates a player, as the channel's owner. The player need not be a member. */
export const channelModerate = frame(
  "channelModerate",
  "Invite, mute, kick or ban a player, as the owner",
  {
    payload: Schema.Struct({ channel: ChannelReference, ...moderation }).check(muteInBounds),
    success: Done,
    errors: [OwnerOnly, ChannelListFull]
  }
)

export class ChannelFrames extends RpcGroup.make(
  channelJoin,
  channelCreate,
  channelLeave,
  channelSend,
  channelModerate
) {}

// Events ---------------------------------------------------------------------------------------

export const ChannelLeaveReason = Schema.Literals([
  "left",
  "timeout",
  "kicked",
  "banned",
  "deleted"
])
export type ChannelLeaveReason = typeof ChannelLeaveReason.Type

export const ChannelCloseReason = Schema.Literals([
  "deleted",
  "empty",
  "kicked",
  "banned",
  "feature_disabled",
  "lost"
])
export type ChannelCloseReason = typeof ChannelCloseReason.Type

const Channel = { channel: Schema.String }

const Voice = {
  /** Whether the connection's player may send now. */
  canSend: Schema.Boolean,
  /** End of the player's mute (ISO 8601 UTC); null when there is none or it has no end. */
  mutedUntil: Schema.NullOr(Schema.String)
}

/**
 * Events of a channel. All members receive them in the same order. `channel_joined` replaces the
 * whole view. In a channel of more than a hundred sockets (anonymous ones included), joins and
 * leaves come in batches as `channel_players`, at most once a second. Apply `left` before `joined`,
 * and ignore a join of a known player and a leave of an unknown one. `player_updated` reports a new
 * display name, and `channel_changed` new settings or a new owner.
 */
export const ChannelEvent = Schema.Union([
  event("channel_joined", {
    channel: ChannelSettings,
    members: Schema.Array(ChannelPlayer),
    voice: Schema.NullOr(ChannelVoice),
    ...Voice
  }),
  event("channel_message", {
    ...Channel,
    from: Schema.String,
    type: Schema.String,
    data: Schema.optionalKey(Schema.Unknown),
    at: Schema.Int
  }),
  event("channel_player_joined", { ...Channel, player: ChannelPlayer }),
  event("channel_player_left", {
    ...Channel,
    playerId: Schema.String,
    reason: ChannelLeaveReason
  }),
  event("channel_players", {
    ...Channel,
    joined: Schema.Array(ChannelPlayer),
    left: Schema.Array(Schema.Struct({ playerId: Schema.String, reason: ChannelLeaveReason }))
  }),
  event("player_updated", { ...Channel, player: PlayerName }),
  event("channel_changed", { channel: ChannelSettings }),
  event("channel_self", { ...Channel, ...Voice }),
  event("channel_closed", { ...Channel, reason: ChannelCloseReason })
])
export type ChannelEvent = typeof ChannelEvent.Type

// Management -----------------------------------------------------------------------------------

const PlayerList = Schema.Array(PlayerIdText).check(Schema.isMaxLength(channelLimits.listMax))

/** Changes that the service has accepted: what runners say to each other. */
export const AcceptedChannelChanges = Schema.Struct({
  join: Schema.optionalKey(ChannelJoin),
  send: Schema.optionalKey(ChannelSend),
  open: Schema.optionalKey(Schema.Boolean),
  maxMembers: Schema.optionalKey(MaxMembers),
  allow: Schema.optionalKey(Schema.Array(Schema.String)),
  speakers: Schema.optionalKey(Schema.Array(Schema.String)),
  /**
   * `true`: peer to peer up to 8 members, else through the relay server. Null: no voice. `relayOnly`
   * defaults to true.
   */
  voice: Schema.optionalKey(
    Schema.NullOr(
      Schema.Union([
        Schema.Literal(true),
        Schema.Struct({
          mode: Schema.optionalKey(VoiceMode),
          relayOnly: Schema.optionalKey(Schema.Boolean)
        })
      ])
    )
  )
})
export type ChannelChanges = typeof AcceptedChannelChanges.Type

/** Changes of a PUT. Absent fields keep their value. A list replaces the stored list. */
export const ChannelChanges = Schema.Struct({
  ...AcceptedChannelChanges.fields,
  allow: Schema.optionalKey(PlayerList),
  speakers: Schema.optionalKey(PlayerList)
})

/** A player, and the end of the mute or ban (ISO 8601 UTC); null: until it is undone. */
const Expiration = Schema.Struct({
  playerId: Schema.String,
  until: Schema.NullOr(Timestamp)
}).annotate({
  identifier: "ChannelExpiration",
  description: "A player, and the end of the mute or ban. Null: until it is undone."
})

/** A channel in the server API, without messages. */
export const ChannelReport = Schema.Struct({
  channel: ChannelSettings,
  allow: Schema.Array(Schema.String),
  speakers: Schema.Array(Schema.String),
  muted: Schema.Array(Expiration),
  banned: Schema.Array(Expiration),
  members: Schema.Array(ChannelPlayer),
  anonymousCount: Schema.Int
}).annotate({
  identifier: "ChannelReport",
  description: "A channel in the server API: settings, lists and members."
})
export type ChannelReport = typeof ChannelReport.Type
