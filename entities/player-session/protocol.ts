/**
 * Calls and messages of player sessions. One entity holds a bucket of sessions, because an entity per
 * player would cost more memory than the connection. The entity id is `<environment id>/<bucket>`.
 */
import { Hash, Schema } from "effect"
import { ClusterSchema, Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { Unavailable, WireError } from "#rpc/errors/codes"
import { batchOf, command, output } from "../messages.ts"

/** Player sessions: the newest connection of each player, and its room or ticket. */
export const playerSessions = {
  /**
   * Buckets of an environment: enough to spread it over the runners, and few enough for one node to
   * watch all of them.
   */
  buckets: 64,
  /**
   * Sessions of one bucket. Beyond it the bucket removes the longest idle session; without an idle
   * one, it admits no new player.
   */
  perBucket: 100_000,
  /** Requests that may wait while a session is loaded. */
  waitingPerSession: 32,
  seatsPerStatement: 500
} as const

const ReservationSchema = Schema.Union([
  Schema.Struct({ kind: Schema.Literal("none") }),
  Schema.Struct({ kind: Schema.Literal("ticket"), ticketId: Schema.String }),
  Schema.Struct({ kind: Schema.Literal("seat"), roomId: Schema.String })
])

const player = { playerId: Schema.String }
const connection = { ...player, connectionId: Schema.String }
const confirmation = { ...connection, ticketId: Schema.String, roomId: Schema.String }

/** A command of the state machine, with its player. */
export const PlayerSessionCommand = Schema.Union([
  command("attach", { ...connection, reservation: ReservationSchema }),
  command("detach", connection),
  command("claim", { ...connection, reservation: ReservationSchema }),
  command("confirm", confirmation),
  // The name of `confirm` in release 0.1, which does not know the new one: 0.2 still sends this one.
  command("settle", confirmation),
  command("release", { ...player, reservation: ReservationSchema })
])
export type PlayerSessionCommand = typeof PlayerSessionCommand.Type

/** A command and the number of its reply; numbers increase within an attachment. */
export const SessionInput = Schema.Struct({ seq: Schema.Int, command: PlayerSessionCommand })
export type SessionInput = typeof SessionInput.Type

/** A connection that a node holds, and its reservation. */
export const Present = Schema.Struct({ ...connection, reservation: ReservationSchema })
export type Present = typeof Present.Type

/** A message from a bucket of sessions to one node. */
export const SessionOutput = Schema.Union([
  /** Success of a command; `roomId` is the seat of the session, or null. */
  output("done", { seq: Schema.Int, roomId: Schema.NullOr(Schema.String) }),
  output("refused", { seq: Schema.Int, error: WireError }),
  /** Replacement of a connection by a newer one of the player. */
  output("replaced", { connectionId: Schema.String })
])
export type SessionOutput = typeof SessionOutput.Type

/** A node and the number of its attachment. */
const attachment = { node: Schema.String, watch: Schema.Int }

export const PlayerSessions = Entity.make("PlayerSessions", [
  Rpc.make("Input", {
    payload: { ...attachment, inputs: Schema.fromJsonString(Schema.Array(SessionInput)) },
    error: Schema.Union([Unavailable])
  }),
  /** Attaches a node with its connections. When the stream ends, they count as disconnected. */
  Rpc.make("Watch", {
    payload: { ...attachment, present: Schema.fromJsonString(Schema.Array(Present)) },
    success: batchOf(SessionOutput),
    error: Schema.Union([Unavailable]),
    stream: true
  }).annotate(ClusterSchema.InterruptOnTermination, true)
])

/** The entity id of a player's bucket. */
export const sessionsId = (environmentId: string, playerId: string): string =>
  `${environmentId}/${Math.abs(Hash.string(playerId)) % playerSessions.buckets}`
