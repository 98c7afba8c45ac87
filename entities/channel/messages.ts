/** Messages between a channel and the nodes of its members and listeners. */
import { Schema } from "effect"
import {
  ChannelJoin,
  ChannelMessage,
  ChannelSend,
  ChannelVoice,
  MaxMembers,
  ModerateOp
} from "#rpc/channels/frames"
import { WireError } from "#rpc/errors/codes"
import { batchOf, command, output } from "../messages.ts"

const player = { playerId: Schema.String }
const connection = { connectionId: Schema.String }

/** The players whom the player has blocked, newest first. Older versions do not send it. */
const blocks = Schema.optionalKey(Schema.Array(Schema.String))

export const moderationActFields = {
  op: ModerateOp,
  target: Schema.String,
  seconds: Schema.optionalKey(Schema.Int)
}

/** A command that a gateway sends for one of its connections. */
export const GatewayCommand = Schema.Union([
  command("join", {
    ...player,
    ...connection,
    displayName: Schema.String,
    openChat: Schema.Boolean,
    blocks,
    /**
     * Whether the command changes nothing but the name and the blocks of a member. A runner of an older version
     * takes it as a repeated join.
     */
    renames: Schema.optionalKey(Schema.Boolean)
  }),
  command("leave", {
    ...player,
    ...connection,
    reason: Schema.Literals(["left", "banned", "deleted"])
  }),
  command("send", { ...player, ...ChannelMessage.fields }),
  command("moderate", { ...player, ...moderationActFields }),
  command("disconnect", {
    ...player,
    ...connection,
    /** Whether the node drains. Older versions do not send it. */
    drained: Schema.optionalKey(Schema.Boolean)
  }),
  command("restrict", player),
  command("listen", { ...connection, listeners: Schema.Int }),
  command("listeners", { listeners: Schema.Int })
])
export type GatewayCommand = typeof GatewayCommand.Type

/**
 * A command and its number on its link. With a negative number the channel replies only to refuse. The
 * number 0 is from a runner of an older version, which did not number such commands.
 */
export const ChannelInput = Schema.Struct({ seq: Schema.Int, command: GatewayCommand })
export type ChannelInput = typeof ChannelInput.Type

/**
 * Message from a channel to one node. `event` goes to all members on the node if `to` is null, else
 * to the players in `to`. With `listeners` it also goes to anonymous connections. `enter` starts
 * connections receiving events, all with the same first frame.
 */
export const ChannelOutput = Schema.Union([
  output("event", {
    to: Schema.NullOr(Schema.Array(Schema.String)),
    listeners: Schema.Boolean,
    /** The members who do not receive it if `to` is null. Older versions do not read it. */
    without: Schema.optionalKey(Schema.Array(Schema.String)),
    frame: Schema.String
  }),
  output("enter", {
    players: Schema.Array(
      Schema.Struct({ player: Schema.String, connection: Schema.String, joinedAt: Schema.Int })
    ),
    listeners: Schema.Array(Schema.String),
    frame: Schema.String
  }),
  output("exit", { player: Schema.String, connection: Schema.String }),
  output("exitListeners", {}),
  output("reply", { seq: Schema.Int }),
  output("refuse", {
    seq: Schema.Int,
    player: Schema.NullOr(Schema.String),
    error: WireError
  }),
  output("end", {})
])
export type ChannelOutput = typeof ChannelOutput.Type

export const ChannelBatch = batchOf(ChannelOutput)
export type ChannelBatch = typeof ChannelBatch.Type

/** Options of a channel that a player creates. */
export const CreateChannel = Schema.Struct({
  ownerId: Schema.String,
  join: ChannelJoin,
  send: ChannelSend,
  maxMembers: MaxMembers,
  voice: Schema.NullOr(ChannelVoice)
})
export type CreateChannel = typeof CreateChannel.Type

/** A member whose connection a gateway still holds after the channel moved. */
export const PresentMember = Schema.Struct({
  playerId: Schema.String,
  displayName: Schema.String,
  openChat: Schema.Boolean,
  blocks,
  connectionId: Schema.String,
  joinedAt: Schema.Int
})
export type PresentMember = typeof PresentMember.Type
