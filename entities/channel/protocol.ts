/**
 * What can be asked of a channel: the server API's calls, one volatile call per channel, node and
 * turn for the players' commands, and one stream per node and channel. The entity's id is
 * `<environment id>/<name>`.
 */
import { Schema } from "effect"
import { ClusterSchema, Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import {
  ChannelExists,
  ChannelListFull,
  ChannelNotFound,
  Unavailable,
  VoiceInUse,
  VoiceTooLarge
} from "#rpc/errors/codes"
import {
  ChannelChanges,
  ChannelJoin,
  ChannelMessage,
  ChannelReport,
  ChannelSend,
  ChannelVoice,
  MaxMembers,
  ModerateOp
} from "#rpc/channels"

const command = <const T extends string, const Fields extends Schema.Struct.Fields>(
  t: T,
  fields: Fields
) => Schema.Struct({ t: Schema.Literal(t), ...fields })

const Player = { playerId: Schema.String }
const Connection = { connectionId: Schema.String }

const actOf = {
  op: ModerateOp,
  target: Schema.String,
  seconds: Schema.optionalKey(Schema.Int)
}

/** What a gateway may ask for its connections. */
export const GatewayCommand = Schema.Union([
  command("join", {
    ...Player,
    ...Connection,
    displayName: Schema.String,
    openChat: Schema.Boolean
  }),
  command("leave", {
    ...Player,
    ...Connection,
    reason: Schema.Literals(["left", "banned", "deleted"])
  }),
  command("send", { ...Player, ...ChannelMessage.fields }),
  command("moderate", { ...Player, ...actOf }),
  command("disconnect", { ...Player, ...Connection }),
  command("restrict", Player),
  command("listen", { ...Connection, listeners: Schema.Int }),
  command("listeners", { listeners: Schema.Int })
])
export type GatewayCommand = typeof GatewayCommand.Type

/** A command and the number its reply carries; 0 wants no reply unless it fails. */
export const ChannelInput = Schema.Struct({ seq: Schema.Int, command: GatewayCommand })
export type ChannelInput = typeof ChannelInput.Type

const item = <const K extends string, const Fields extends Schema.Struct.Fields>(
  kind: K,
  fields: Fields
) => Schema.Struct({ kind: Schema.Literal(kind), ...fields })

/**
 * What a channel tells a node. `tell` goes to everyone there when `to` is null, else to the players it
 * names, and to the anonymous when it says so: no list of ids for what all hear. `enter` names those
 * who hear from here on, all with one frame.
 */
export const ChannelOutput = Schema.Union([
  item("tell", {
    to: Schema.NullOr(Schema.Array(Schema.String)),
    listeners: Schema.Boolean,
    frame: Schema.String
  }),
  item("enter", {
    players: Schema.Array(
      Schema.Struct({ player: Schema.String, connection: Schema.String, joinedAt: Schema.Int })
    ),
    listeners: Schema.Array(Schema.String),
    frame: Schema.String
  }),
  item("exit", { player: Schema.String, connection: Schema.String }),
  item("exitListeners", {}),
  item("reply", { seq: Schema.Int }),
  item("refuse", {
    seq: Schema.Int,
    player: Schema.NullOr(Schema.String),
    error: Schema.Struct({
      code: Schema.String,
      message: Schema.String,
      details: Schema.optionalKey(Schema.Unknown)
    })
  }),
  item("end", {})
])
export type ChannelOutput = typeof ChannelOutput.Type

/** A batch of items, and the activation of the channel that tells them. */
export const ChannelBatch = Schema.Struct({
  epoch: Schema.Int,
  items: Schema.fromJsonString(Schema.Array(ChannelOutput))
})
export type ChannelBatch = typeof ChannelBatch.Type

/** How a player sets a channel up. */
export const CreateChannel = Schema.Struct({
  ownerId: Schema.String,
  join: ChannelJoin,
  send: ChannelSend,
  maxMembers: MaxMembers,
  voice: Schema.NullOr(ChannelVoice)
})
export type CreateChannel = typeof CreateChannel.Type

/** A member that a gateway still holds after the channel moved. */
export const Present = Schema.Struct({
  playerId: Schema.String,
  displayName: Schema.String,
  openChat: Schema.Boolean,
  connectionId: Schema.String,
  joinedAt: Schema.Int
})
export type Present = typeof Present.Type

export const Channel = Entity.make("Channel", [
  /** A player makes the channel; it has half a minute to come in. */
  Rpc.make("Create", {
    payload: { create: CreateChannel },
    error: Schema.Union([ChannelExists, Unavailable])
  }),
  /** The server makes the channel, takes it over, or changes it. */
  Rpc.make("Put", {
    payload: { changes: ChannelChanges },
    success: ChannelReport,
    error: Schema.Union([VoiceInUse, VoiceTooLarge, Unavailable])
  }),
  Rpc.make("Get", {
    success: ChannelReport,
    error: Schema.Union([ChannelNotFound, Unavailable])
  }),
  Rpc.make("Delete", { error: Schema.Union([ChannelNotFound, Unavailable]) }),
  /** The channel has a row that is overdue: it wakes, and looks again if it knows of none. */
  Rpc.make("Wake", { error: Unavailable }),
  /** A message from the server; answers to how many sockets it goes. */
  Rpc.make("Publish", {
    payload: ChannelMessage,
    success: Schema.Int,
    error: Schema.Union([ChannelNotFound, Unavailable])
  }),
  Rpc.make("Moderate", {
    payload: actOf,
    error: Schema.Union([ChannelNotFound, ChannelListFull, Unavailable])
  }),
  /** Puts everyone out because the feature is off. */
  Rpc.make("Shut", { error: Unavailable }),
  /** The commands of one node in one turn; replies come through `Watch`. */
  Rpc.make("Input", {
    payload: {
      node: Schema.String,
      /** The attachment that this is from: what an earlier one has sent comes too late. */
      watch: Schema.Int,
      /** Numbers the calls through it; the same number again is a call that was sent twice. */
      call: Schema.Int,
      inputs: Schema.fromJsonString(Schema.Array(ChannelInput))
    },
    error: Unavailable
  }),
  /** Everything the channel tells this node, from the first batch (empty: attached) to its end. */
  Rpc.make("Watch", {
    payload: {
      node: Schema.String,
      /** Numbers the node's attachments; the same number again is a call that was sent twice. */
      watch: Schema.Int,
      /** The activation last heard, 0 for none. */
      epoch: Schema.Int,
      players: Schema.Array(Present),
      /** How many anonymous connections listen there. */
      listeners: Schema.Int
    },
    success: ChannelBatch,
    error: Schema.Union([ChannelNotFound, Unavailable]),
    stream: true
  }).annotate(ClusterSchema.InterruptOnTermination, true)
])

/** The entity id of a channel. */
export const channelId = (environmentId: string, name: string): string => `${environmentId}/${name}`
