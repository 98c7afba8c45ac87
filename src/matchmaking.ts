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
import {
  claim,
  enterRoom,
  modeOf,
  newcomerOf,
  release,
  roomOfMode,
  sessionPatience
} from "./rooms.ts"

/** Waits for the room of a match; the ticket goes with the wait, however it ends. */
const waitForMatch = Effect.fnUntraced(function* (
  connection: PlayerConnection,
  ticketId: string,
  key: string
) {
  const hub = yield* Hub
  const mode = yield* modeOf(connection.environmentId, key)
  connection.ticket = { ticketId, mode: key }
  const wait = hub.queue(connection.environmentId, key).wait({
    t: "enqueue",
    ticketId,
    newcomer: newcomerOf(hub.node, connection),
    settings: {
      minPlayers: mode.minPlayers,
      fillTimeoutSeconds: mode.fillTimeoutSeconds,
      room: { ...roomOfMode(connection.environmentId, mode), matched: true }
    }
  })
  return yield* Effect.ensuring(
    wait,
    Effect.sync(() => {
      connection.ticket = undefined
    })
  )
})

/** Waits for a match and comes into its room. */
export const quickMatch = Effect.fnUntraced(function* (
  connection: PlayerConnection,
  { mode }: FramePayload<"quickMatch">
) {
  const hub = yield* Hub
  yield* modeOf(connection.environmentId, mode)
  const { connectionId, environmentId, playerId } = connection
  const ticketId = yield* newId.ticket
  const ticket = { k: "ticket", ticketId } as const
  yield* claim(connection, ticket)
  const roomId = yield* Effect.onError(waitForMatch(connection, ticketId, mode), () =>
    release(connection, ticket)
  )
  yield* hub
    .session(environmentId, playerId)
    .Settle({ connectionId, ticketId, roomId })
    .pipe(
      Effect.retry(sessionPatience),
      Effect.mapError(() => new MatchCancelled())
    )
  return yield* Effect.tapError(enterRoom(connection, roomId), () =>
    release(connection, { k: "seat", roomId })
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
