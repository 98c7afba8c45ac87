/** What a gateway can ask of a player's session. The id is `<environment id>/<player id>`. */
import { Schema } from "effect"
import { ClusterSchema, Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { AlreadyInRoom, AlreadyMatching, Unavailable } from "#rpc/errors"

export const PlaceSchema = Schema.Union([
  Schema.Struct({ k: Schema.Literal("none") }),
  Schema.Struct({ k: Schema.Literal("ticket"), ticketId: Schema.String }),
  Schema.Struct({ k: Schema.Literal("seat"), roomId: Schema.String })
])

/** What a session tells a connection, first `attached` with the seat it found. */
export const SessionSignal = Schema.Union([
  Schema.Struct({ k: Schema.Literal("attached"), roomId: Schema.NullOr(Schema.String) }),
  Schema.Struct({ k: Schema.Literal("replaced") })
])
export type SessionSignal = typeof SessionSignal.Type

export const PlayerSession = Entity.make("PlayerSession", [
  /** The stream is the connection: it ends when the socket does, or when a newer one takes over. */
  Rpc.make("Attach", {
    payload: { connectionId: Schema.String, place: PlaceSchema },
    success: SessionSignal,
    error: Unavailable,
    stream: true
  }).annotate(ClusterSchema.InterruptOnTermination, true),
  Rpc.make("Claim", {
    payload: { connectionId: Schema.String, place: PlaceSchema },
    error: Schema.Union([AlreadyInRoom, AlreadyMatching, Unavailable])
  }),
  Rpc.make("Settle", {
    payload: {
      connectionId: Schema.String,
      ticketId: Schema.String,
      roomId: Schema.String
    },
    error: Unavailable
  }),
  Rpc.make("Release", { payload: { place: PlaceSchema }, error: Unavailable })
])

/** The entity id of a player's session. */
export const sessionId = (environmentId: string, playerId: string): string =>
  `${environmentId}/${playerId}`
