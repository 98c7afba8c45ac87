/**
 * Messages between a room and the nodes of its members. Commands and outputs travel as one JSON text
 * per batch, which the receiver decodes once.
 */
import { Schema } from "effect"
import { WireError } from "#rpc/errors/codes"
import { AcceptedJsonObject } from "#rpc/json"
import { SignalKind, Transport } from "#rpc/rooms/events"
import { batchOf, command as tagged, output } from "../messages.ts"

/** The players whom the player has blocked, newest first. Older versions do not send it. */
const blocks = Schema.optionalKey(Schema.Array(Schema.String))

const connection = { node: Schema.String, connectionId: Schema.String }

export const JoiningPlayerSchema = Schema.Struct({
  playerId: Schema.String,
  displayName: Schema.String,
  relayOnly: Schema.Boolean,
  blocks,
  ...connection
})

const command = <const T extends string, const Fields extends Schema.Struct.Fields>(
  t: T,
  fields: Fields
) => tagged(t, { playerId: Schema.String, ...fields })

/** A command that a gateway sends for one of its players. */
export const PlayerCommand = Schema.Union([
  command("join", { displayName: Schema.String, relayOnly: Schema.Boolean, blocks, ...connection }),
  command("resume", {
    relayOnly: Schema.Boolean,
    blocks,
    ...connection,
    /** The player's name now. Older versions do not send it. */
    displayName: Schema.optionalKey(Schema.String)
  }),
  command("leave", {
    reason: Schema.Literals(["left", "banned", "deleted"]),
    /** The sending connection; the room ignores the command if a newer one holds the seat. */
    connectionId: Schema.optionalKey(Schema.String)
  }),
  command("send", {
    type: Schema.String,
    data: Schema.optionalKey(Schema.Unknown),
    to: Schema.optionalKey(Schema.Array(Schema.String)),
    /** A `RoomAct` of the member, in a message to nobody. Older versions do not read it. */
    act: Schema.optionalKey(Schema.Unknown)
  }),
  command("setState", { patch: AcceptedJsonObject }),
  command("setMyState", { patch: AcceptedJsonObject }),
  command("lock", { locked: Schema.Boolean }),
  command("signal", {
    to: Schema.String,
    kind: SignalKind,
    data: Schema.optionalKey(Schema.Unknown),
    gen: Schema.optionalKey(Schema.Int)
  }),
  command("iceTransport", {}),
  command("relay", {
    relayOnly: Schema.Boolean,
    /** New name of the player. Older versions do not read it. */
    displayName: Schema.optionalKey(Schema.String),
    blocks
  }),
  command("disconnect", {
    connectionId: Schema.String,
    replaced: Schema.Boolean,
    /** Whether the node drains. Older versions do not send it. */
    drained: Schema.optionalKey(Schema.Boolean)
  })
])
export type PlayerCommand = typeof PlayerCommand.Type

/**
 * A command and its number on its link. With a negative number the room replies only to refuse. The
 * number 0 is from a runner of an older version, which did not number such commands.
 */
export const RoomInput = Schema.Struct({ seq: Schema.Int, command: PlayerCommand })
export type RoomInput = typeof RoomInput.Type

/**
 * A message from a room to one node. `enter` and `exit` start and stop a member's connection
 * receiving events; `end` is the last output of a closed room.
 */
export const RoomOutput = Schema.Union([
  output("event", {
    to: Schema.NullOr(Schema.Array(Schema.String)),
    except: Schema.NullOr(Schema.String),
    /** The members besides `except` who do not receive it. Older versions do not read it. */
    without: Schema.optionalKey(Schema.Array(Schema.String)),
    frame: Schema.String
  }),
  output("enter", { player: Schema.String, connection: Schema.String, frame: Schema.String }),
  output("exit", { player: Schema.String }),
  output("reply", { seq: Schema.Int, data: AcceptedJsonObject }),
  output("refuse", {
    seq: Schema.Int,
    player: Schema.String,
    error: WireError
  }),
  output("end", {})
])
export type RoomOutput = typeof RoomOutput.Type

/** Whether an event of a room reaches this player. */
export const receives = (
  {
    except,
    to,
    without
  }: Pick<Extract<RoomOutput, { kind: "event" }>, "to" | "except" | "without">,
  playerId: string
): boolean =>
  to === null ? playerId !== except && without?.includes(playerId) !== true : to.includes(playerId)

export const RoomBatch = batchOf(RoomOutput)
export type RoomBatch = typeof RoomBatch.Type

/** Settings that a room copies from its mode when it opens, and keeps for its life. */
export const roomSettingsFields = {
  environmentId: Schema.String,
  mode: Schema.String,
  private: Schema.Boolean,
  transport: Transport,
  p2p: Schema.NullOr(Schema.Struct({ relayOnly: Schema.Boolean, maxPlayers: Schema.Int })),
  hostOnlyState: Schema.Boolean,
  maxPlayers: Schema.Int,
  metadata: AcceptedJsonObject,
  graceSeconds: Schema.Int,
  matched: Schema.Boolean,
  /** Absent for false: release 0.1 has no such rooms. */
  durable: Schema.optionalKey(Schema.Boolean),
  /** These four are absent where the mode does not declare them. */
  powers: Schema.optionalKey(Schema.Array(Schema.String)),
  votes: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({
        op: Schema.String,
        share: Schema.Finite,
        minVoters: Schema.Int,
        seconds: Schema.Int,
        cooldownSeconds: Schema.Int
      })
    )
  ),
  teams: Schema.optionalKey(
    Schema.Array(Schema.Struct({ key: Schema.String, min: Schema.Int, max: Schema.Int }))
  ),
  freeTeams: Schema.optionalKey(Schema.Boolean)
}

/** Settings and first members of a new room; with `code` null the room chooses its code. */
export const OpenRoom = Schema.Struct({
  ...roomSettingsFields,
  code: Schema.NullOr(Schema.String),
  joiningPlayers: Schema.Array(JoiningPlayerSchema)
})
export type OpenRoom = typeof OpenRoom.Type

/** A member whose connection a gateway still holds after the room moved. */
export const PresentMember = Schema.Struct({
  playerId: Schema.String,
  displayName: Schema.String,
  relayOnly: Schema.Boolean,
  blocks,
  connectionId: Schema.String
})
