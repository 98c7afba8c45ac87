/**
 * Matchmaking from a gateway's side (spec section 4.4): a ticket is claimed from the player's session,
 * waits in the queue of its mode, and becomes a seat when the session agrees.
 */
import { Effect } from "effect"
import { queueId } from "#entities/matchmaking-queue/protocol"
import { MatchCancelled, NotMatching } from "#rpc/errors"
import { newId } from "#rpc/ids"
import type { PlayerConnection } from "./realtime/connection.ts"
import type { FramePayload } from "./realtime/frames.ts"
import { Hub } from "./realtime/hub.ts"
import { claim, release, settle } from "./realtime/place.ts"
import { enterRoom, modeOf, newcomerOf, notEntered, roomOfMode } from "./rooms.ts"

/** Waits for the room of a match. */
const waitForMatch = Effect.fnUntraced(function* (
  connection: PlayerConnection,
  ticketId: string,
  key: string
) {
  const hub = yield* Hub
  const mode = yield* modeOf(connection.environmentId, key)
  connection.ticket = { ticketId, mode: key }
  return yield* hub.queue(connection.environmentId, key).wait({
    t: "enqueue",
    ticketId,
    newcomer: newcomerOf(hub.node, connection),
    settings: {
      minPlayers: mode.minPlayers,
      fillTimeoutSeconds: mode.fillTimeoutSeconds,
      room: { ...roomOfMode(connection.environmentId, mode), matched: true }
    }
  })
})

/** The seat of a match that came to nothing. */
const giveUpSeat = Effect.fnUntraced(function* (connection: PlayerConnection, roomId: string) {
  const hub = yield* Hub
  const { connectionId, environmentId, playerId } = connection
  const line = hub.room(environmentId, roomId)
  yield* Effect.ignore(line.request({ t: "leave", playerId, connectionId, reason: "left" }))
  line.rest()
})

/** Waits with a claimed ticket, and takes the seat that comes of it. */
const takeMatch = Effect.fnUntraced(function* (
  connection: PlayerConnection,
  ticketId: string,
  mode: string
) {
  const ticket = { k: "ticket", ticketId } as const
  const roomId = yield* Effect.onError(waitForMatch(connection, ticketId, mode), () =>
    release(connection, ticket)
  )
  const unsettled = Effect.andThen(giveUpSeat(connection, roomId), release(connection, ticket))
  yield* settle(connection, ticketId, roomId).pipe(
    Effect.tapError(() => unsettled),
    Effect.mapError(() => new MatchCancelled())
  )
  return yield* Effect.tapError(enterRoom(connection, roomId), (error) =>
    notEntered(connection, roomId, error)
  )
})

/** Waits for a match and comes into its room; the connection holds the ticket until then. */
export const quickMatch = Effect.fnUntraced(function* (
  connection: PlayerConnection,
  { mode }: FramePayload<"quickMatch">
) {
  yield* modeOf(connection.environmentId, mode)
  const ticketId = yield* newId.ticket
  yield* claim(connection, { k: "ticket", ticketId })
  return yield* Effect.ensuring(
    takeMatch(connection, ticketId, mode),
    Effect.sync(() => {
      if (connection.ticket?.ticketId === ticketId) connection.ticket = undefined
    })
  )
})

/** Takes the connection's ticket out of its queue. */
export const cancelMatch = Effect.fnUntraced(function* (connection: PlayerConnection) {
  const hub = yield* Hub
  const { environmentId, ticket } = connection
  if (ticket === undefined) return yield* new NotMatching()
  const cancelled = yield* hub.queue(environmentId, ticket.mode).cancel(ticket.ticketId)
  return { cancelled }
})

/** Ends the wait of a ticket whose mode is no more. */
export const failTicket = Effect.fnUntraced(function* (
  connection: PlayerConnection,
  error: Parameters<ReturnType<Hub["Service"]["queue"]>["fail"]>[1]
) {
  const hub = yield* Hub
  const { environmentId, ticket } = connection
  if (ticket === undefined) return
  hub.queues.get(queueId(environmentId, ticket.mode))?.fail(ticket.ticketId, error)
})
