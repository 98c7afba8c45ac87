/**
 * What a gateway can ask of players' sessions. Sessions live by the bucket: an entity each would cost
 * more than the connection that it is for. The id is `<environment id>/<bucket>`.
 */
import { Hash, Schema } from "effect"
import { ClusterSchema, Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { Unavailable } from "#rpc/errors/codes"
import { playerSessions } from "#rpc/limits"

const ReservationSchema = Schema.Union([
  Schema.Struct({ kind: Schema.Literal("none") }),
  Schema.Struct({ kind: Schema.Literal("ticket"), ticketId: Schema.String }),
  Schema.Struct({ kind: Schema.Literal("seat"), roomId: Schema.String })
])

const player = { playerId: Schema.String }
const connection = { ...player, connectionId: Schema.String }

/** A command of the state machine and the player it is for. */
export const PlayerSessionCommand = Schema.Union([
  Schema.Struct({ t: Schema.Literal("attach"), ...connection, reservation: ReservationSchema }),
  Schema.Struct({ t: Schema.Literal("detach"), ...connection }),
  Schema.Struct({ t: Schema.Literal("claim"), ...connection, reservation: ReservationSchema }),
  Schema.Struct({
    t: Schema.Literal("settle"),
    ...connection,
    ticketId: Schema.String,
    roomId: Schema.String
  }),
  Schema.Struct({ t: Schema.Literal("release"), ...player, reservation: ReservationSchema })
])
export type PlayerSessionCommand = typeof PlayerSessionCommand.Type

/** A command and the number its reply carries; numbers of one attachment only grow. */
export const SessionInput = Schema.Struct({ seq: Schema.Int, command: PlayerSessionCommand })
export type SessionInput = typeof SessionInput.Type

/** A connection that a node holds, and the place that it was granted. */
export const Present = Schema.Struct({ ...connection, reservation: ReservationSchema })
export type Present = typeof Present.Type

/** What sessions tell a node. */
export const SessionOutput = Schema.Union([
  /** The command was carried out; `roomId` is the seat that the session knows of. */
  Schema.Struct({
    kind: Schema.Literal("done"),
    seq: Schema.Int,
    roomId: Schema.NullOr(Schema.String)
  }),
  Schema.Struct({
    kind: Schema.Literal("refused"),
    seq: Schema.Int,
    error: Schema.Struct({
      code: Schema.String,
      message: Schema.String,
      details: Schema.optionalKey(Schema.Unknown)
    })
  }),
  /** A newer connection of the player took over. */
  Schema.Struct({ kind: Schema.Literal("replaced"), connectionId: Schema.String })
])
export type SessionOutput = typeof SessionOutput.Type

/** The attachment of a node, by its number. */
const attachment = { node: Schema.String, watch: Schema.Int }

export const PlayerSessions = Entity.make("PlayerSessions", [
  Rpc.make("Input", {
    payload: { ...attachment, inputs: Schema.fromJsonString(Schema.Array(SessionInput)) },
    error: Unavailable
  }),
  /** What this node's connections have to hear; they are gone with the stream. */
  Rpc.make("Watch", {
    payload: { ...attachment, present: Schema.fromJsonString(Schema.Array(Present)) },
    success: Schema.Struct({
      epoch: Schema.Int,
      items: Schema.fromJsonString(Schema.Array(SessionOutput))
    }),
    error: Unavailable,
    stream: true
  }).annotate(ClusterSchema.InterruptOnTermination, true)
])

/** The entity id of the bucket that a player's session is in. */
export const sessionsId = (environmentId: string, playerId: string): string =>
  `${environmentId}/${Math.abs(Hash.string(playerId)) % playerSessions.buckets}`
