/**
 * Realtime channels (spec sections 4.5 and 6, decisions 3.9): messages to everyone who is in, told
 * and forgotten. Clients make channels whose names begin with `@`; the server API makes and manages
 * any. One `Rpc` per frame, as in `./rooms.ts`.
 *
 * Timestamps of fields are ISO 8601 UTC; `at` is Unix milliseconds.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Rpc, RpcGroup } from "effect/rpc"
import { FeatureGate, RequiredFeature, Requests, SecretKey } from "./auth.ts"
import {
  ChannelBanned,
  ChannelExists,
  ChannelForbidden,
  ChannelFull,
  ChannelListFull,
  ChannelNotFound,
  FeatureDisabled,
  Muted,
  NotInChannel,
  OwnerOnly,
  PayloadTooLarge,
  SendForbidden,
  TooManyChannels,
  VoiceInUse,
  VoiceTooLarge,
  wire
} from "./errors/codes.ts"
import { channels as limits } from "./limits.ts"
import { commonFrameErrors, MessageData } from "./rooms.ts"

// Values ---------------------------------------------------------------------------------------

const namePattern = /^@?[a-z0-9][a-z0-9_.:-]{0,62}$/

/** Any channel's name. */
export const ChannelName = Schema.String.check(
  Schema.isPattern(namePattern, {
    message: "Expected a-z 0-9 _ . : - after an optional @, up to 64 characters"
  })
)

/** A name that clients may give a channel. */
const ClientChannelName = ChannelName.check(
  Schema.isPattern(/^@/, { message: "Expected a name that begins with @" })
)

/** A name that may not be one: then there is no such channel. */
const ChannelReference = Schema.String.check(Schema.isMaxLength(128))

/** `invited`: only those on the list `allow`, and the owner. */
export const ChannelJoin = Schema.Literals(["anyone", "invited"])
export type ChannelJoin = typeof ChannelJoin.Type

/** `speakers`: only those on the list, and the owner; `server`: only the server API. */
export const ChannelSend = Schema.Literals(["anyone", "speakers", "server"])
export type ChannelSend = typeof ChannelSend.Type

/** Whom a channel takes at most; anonymous listeners do not count. */
export const MaxMembers = Schema.Int.check(
  Schema.isBetween({ minimum: 1, maximum: limits.membersMax })
)

/** How a call's media travels: from player to player, or through the relay server. */
export const VoiceMode = Schema.Literals(["p2p", "sfu"])

/** A channel's voice calls; `relayOnly`: peers never see each other's address. */
export const ChannelVoice = Schema.Struct({ mode: VoiceMode, relayOnly: Schema.Boolean })
export type ChannelVoice = typeof ChannelVoice.Type

/** How a channel is set up. Told to members and by the server API alike. */
export const ChannelSettings = Schema.Struct({
  name: Schema.String,
  /** Made or taken over by the server API: it lives until DELETE and has no owner. */
  managed: Schema.Boolean,
  ownerId: Schema.NullOr(Schema.String),
  join: ChannelJoin,
  send: ChannelSend,
  /** Anonymous connections may join, and read only. */
  open: Schema.Boolean,
  maxMembers: MaxMembers,
  voice: Schema.NullOr(ChannelVoice),
  createdAt: Schema.String
})
export type ChannelSettings = typeof ChannelSettings.Type

/** A player in a channel. */
export const ChannelPlayer = Schema.Struct({
  id: Schema.String,
  displayName: Schema.String,
  joinedAt: Schema.String
})
export type ChannelPlayer = typeof ChannelPlayer.Type

/** What can be done to a player of a channel. `seconds` is for `mute` and `ban`. */
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

const PlayerRef = Schema.String.check(Schema.isBetweenLength(1, 64))

const moderation = {
  op: ModerateOp,
  playerId: PlayerRef,
  /** How long a mute (at most a day) or a ban (at most 366 days) lasts; without it, until undone. */
  seconds: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: limits.banSecondsMax }))
  )
}

const muteInBounds = Schema.makeFilter(
  ({ op, seconds = 1 }: { readonly op: ModerateOp; readonly seconds?: number }) =>
    op === "mute" && seconds > limits.muteSecondsMax
      ? { path: ["seconds"], issue: `Expected at most ${limits.muteSecondsMax} for a mute` }
      : undefined
)

/** An act of moderation, as the server API takes it. */
export const Moderation = Schema.Struct(moderation).check(muteInBounds)
export type Moderation = typeof Moderation.Type

/** A message of any kind: `data` is any JSON of at most 16 KB. */
export const ChannelMessage = Schema.Struct({
  type: Schema.String.check(Schema.isBetweenLength(1, limits.typeMaxCharacters)),
  data: Schema.optionalKey(MessageData)
})
export type ChannelMessage = typeof ChannelMessage.Type

// Frames ---------------------------------------------------------------------------------------

/** The channel that the connection is now in. */
export const ChannelRef = Schema.Struct({ channel: Schema.String })

const Done = Schema.Struct({})

/**
 * Come into a channel. `channel_joined` comes before the reply. Anonymous connections come only into
 * channels that the server has opened to them (else `player_required`), and only listen.
 */
export const channelJoin = Rpc.make("channelJoin", {
  payload: { channel: ChannelReference },
  success: ChannelRef,
  error: Schema.Union([
    ...commonFrameErrors,
    ChannelNotFound,
    ChannelForbidden,
    ChannelBanned,
    ChannelFull,
    TooManyChannels
  ])
}).annotate(OpenApi.Summary, "Come into a channel")

/** Make a channel and come into it as its owner. Without a name it gets one. */
export const channelCreate = Rpc.make("channelCreate", {
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
  error: Schema.Union([
    ...commonFrameErrors,
    ChannelExists,
    ChannelForbidden,
    VoiceTooLarge,
    TooManyChannels
  ])
}).annotate(OpenApi.Summary, "Make a channel and come into it as its owner")

/** Go out of a channel; of one the connection is not in, too. */
export const channelLeave = Rpc.make("channelLeave", {
  payload: { channel: ChannelReference },
  success: Done,
  error: Schema.Union([...commonFrameErrors])
}).annotate(OpenApi.Summary, "Go out of a channel")

/**
 * A message to everyone in the channel, the sender among them. Ten a second, twenty at once, for each
 * channel; beyond that `rate_limited`.
 */
export const channelSend = Rpc.make("channelSend", {
  payload: { channel: ChannelReference, ...ChannelMessage.fields },
  success: Done,
  error: Schema.Union([...commonFrameErrors, NotInChannel, Muted, SendForbidden, PayloadTooLarge])
}).annotate(OpenApi.Summary, "A message to everyone in the channel")

/** What a channel's owner may do to a player; the player need not be in. */
export const channelModerate = Rpc.make("channelModerate", {
  payload: Schema.Struct({ channel: ChannelReference, ...moderation }).check(muteInBounds),
  success: Done,
  error: Schema.Union([...commonFrameErrors, OwnerOnly, ChannelListFull])
}).annotate(OpenApi.Summary, "Invite, mute, kick, ban: the owner's acts")

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

const event = <const T extends string, const Fields extends Schema.Struct.Fields>(
  t: T,
  fields: Fields
) => Schema.Struct({ t: Schema.Literal(t), ...fields })

const Channel = { channel: Schema.String }

const Voice = {
  /** May the connection's player send now? */
  canSend: Schema.Boolean,
  /** End of the player's mute (ISO 8601 UTC); null when there is none, or none is known. */
  mutedUntil: Schema.NullOr(Schema.String)
}

/**
 * The events of a channel, in the one order that all see (spec section 6). `channel_joined` replaces
 * whatever was known. In a channel of more than a hundred sockets (anonymous ones among them)
 * `channel_player_joined` and `channel_player_left` are told together, at most once a second, as
 * `channel_players`: apply `left` before `joined`; a player may be known, or unknown, already.
 * `channel_changed` tells of new settings or a new owner.
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
  event("channel_changed", { channel: ChannelSettings }),
  event("channel_self", { ...Channel, ...Voice }),
  event("channel_closed", { ...Channel, reason: ChannelCloseReason })
])
export type ChannelEvent = typeof ChannelEvent.Type

// Management -----------------------------------------------------------------------------------

const PlayerList = Schema.Array(PlayerRef).check(Schema.isMaxLength(limits.listMax))

/** What PUT sets; what it leaves out stays as it is. A list replaces the list. */
export const ChannelChanges = Schema.Struct({
  join: Schema.optionalKey(ChannelJoin),
  send: Schema.optionalKey(ChannelSend),
  open: Schema.optionalKey(Schema.Boolean),
  maxMembers: Schema.optionalKey(MaxMembers),
  allow: Schema.optionalKey(PlayerList),
  speakers: Schema.optionalKey(PlayerList),
  /**
   * `true`: peer to peer up to 8 members, else through the relay server. Null: no voice. `relayOnly`
   * is true unless it is said to be false.
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
export type ChannelChanges = typeof ChannelChanges.Type

/** A player and until when (ISO 8601 UTC); null: until it is undone. */
const Expiration = Schema.Struct({ playerId: Schema.String, until: Schema.NullOr(Schema.String) })

/** A channel as the server API shows it; never a message. */
export const ChannelReport = Schema.Struct({
  channel: ChannelSettings,
  allow: Schema.Array(Schema.String),
  speakers: Schema.Array(Schema.String),
  muted: Schema.Array(Expiration),
  banned: Schema.Array(Expiration),
  members: Schema.Array(ChannelPlayer),
  anonymousCount: Schema.Int
})
export type ChannelReport = typeof ChannelReport.Type

const named = { params: { name: Schema.String } }

/**
 * `/v1/realtime/channels`: channels by the server's hand, with the secret key. PUT, DELETE and
 * moderate share 300 calls a minute and key, messages have 600, over all nodes.
 */
export class ChannelsApi extends HttpApiGroup.make("channels")
  .add(
    HttpApiEndpoint.put("put", "/:name", {
      params: { name: ChannelName },
      payload: ChannelChanges,
      success: ChannelReport,
      error: [wire(VoiceInUse), wire(VoiceTooLarge), wire(FeatureDisabled)]
    }).annotate(OpenApi.Summary, "Make a channel, take one over, or change its settings"),
    HttpApiEndpoint.get("get", "/:name", {
      ...named,
      success: ChannelReport,
      error: wire(ChannelNotFound)
    }).annotate(OpenApi.Summary, "A channel's settings, lists and members"),
    HttpApiEndpoint.delete("delete", "/:name", {
      ...named,
      success: Schema.Struct({ deleted: Schema.Literal(true) }),
      error: wire(ChannelNotFound)
    }).annotate(OpenApi.Summary, "End a channel for its members"),
    HttpApiEndpoint.post("message", "/:name/messages", {
      ...named,
      payload: ChannelMessage,
      success: Schema.Struct({ delivered: Schema.Int }),
      error: wire(ChannelNotFound)
    }).annotate(OpenApi.Summary, "A message from the server; `delivered` counts the sockets"),
    HttpApiEndpoint.post("moderate", "/:name/moderate", {
      ...named,
      payload: Moderation,
      success: Schema.Struct({}),
      error: [wire(ChannelNotFound), wire(ChannelListFull)]
    }).annotate(OpenApi.Summary, "Invite, mute, kick, ban")
  )
  .annotateEndpoints(RequiredFeature, "realtimeChannels")
  .prefix("/v1/realtime/channels")
  .middleware(Requests)
  .middleware(FeatureGate)
  .middleware(SecretKey) {}
