/**
 * Matchmaking from a gateway's side (spec section 4.4): a ticket is claimed from the player's session,
 * waits in the queue of its mode, and becomes a seat when the session agrees.
 */
import { Clock, Effect, Metric } from "effect"
import { findMode } from "#rpc/config-document/multiplayer"
import { MatchCancelled, ModeNotFound, NotMatching, Unavailable } from "#rpc/errors/codes"
import { type EnvironmentId, newId } from "#rpc/ids"
import type { QueueSettings } from "#entities/matchmaking-queue/protocol"
import type { FramePayload } from "#server/links/frames"
import { Hub } from "#server/links/hub"
import type { PlayerConnection } from "#server/links/player-connection"
import { claim, release, confirm } from "#server/links/reservations"
import { Configs } from "../config/service.ts"
import { enterRoom, joiningPlayerOf, notEntered, roomOfMode } from "../rooms/frames.ts"

/** How a mode's queue makes matches, by the config in force. */
const queueSettings = Effect.fnUntraced(function* (environmentId: EnvironmentId, key: string) {
  const configs = yield* Configs
  const { config, version } = yield* configs.current(environmentId)
  const mode = findMode(config, key) ?? (yield* new ModeNotFound())
  const settings: QueueSettings = {
    configVersion: version,
    minPlayers: mode.minPlayers,
    fillTimeoutSeconds: mode.fillTimeoutSeconds,
    room: { ...roomOfMode(environmentId, mode), matched: true }
  }
  return settings
})

/** Claims a ticket; from then on it can be cancelled. */
const takeTicket = Effect.fnUntraced(function* (connection: PlayerConnection, mode: string) {
  const settings = yield* queueSettings(connection.environmentId, mode)
  const ticketId = yield* newId.ticket
  yield* claim(connection, { kind: "ticket", ticketId })
  connection.ticket = { ticketId, mode }
  return { ticketId, mode, settings }
})

type Wait = Effect.Success<ReturnType<typeof takeTicket>>

/** How long players have waited for their matches. */
export const matchWaitSeconds = Metric.histogram("svc_match_wait_seconds", {
  description: "How long a ticket has waited for its match, those that were cancelled left out.",
  boundaries: [0.1, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300]
})

/** Waits for the room of a match. */
const waitForMatch = Effect.fnUntraced(function* (connection: PlayerConnection, wait: Wait) {
  const hub = yield* Hub
  const { mode, settings, ticketId } = wait
  const joiningPlayer = joiningPlayerOf(hub.node, connection)
  const begun = yield* Clock.currentTimeMillis
  const roomId = yield* hub
    .queue(connection.environmentId, mode)
    .wait({ t: "enqueue", ticketId, joiningPlayer, settings })
  yield* Metric.update(matchWaitSeconds, ((yield* Clock.currentTimeMillis) - begun) / 1000)
  return roomId
})

/** The seat of a match that came to nothing. */
const giveUpSeat = Effect.fnUntraced(function* (connection: PlayerConnection, roomId: string) {
  const hub = yield* Hub
  const { connectionId, environmentId, playerId } = connection
  const line = hub.room(environmentId, roomId)
  yield* Effect.ignore(line.request({ t: "leave", playerId, connectionId, reason: "left" }))
  line.closeIfIdle()
})

/** Waits with a claimed ticket, and takes the seat that comes of it. */
const takeMatch = Effect.fnUntraced(function* (connection: PlayerConnection, wait: Wait) {
  const { ticketId } = wait
  const ticket = { kind: "ticket", ticketId } as const
  const roomId = yield* Effect.onError(waitForMatch(connection, wait), () =>
    release(connection, ticket)
  )
  const unsettled = Effect.andThen(giveUpSeat(connection, roomId), release(connection, ticket))
  yield* confirm(connection, ticketId, roomId).pipe(
    Effect.tapError(() => unsettled),
    Effect.mapError(() => new MatchCancelled())
  )
  return yield* enterRoom(connection, roomId).pipe(
    Effect.tapError((error) => notEntered(connection, roomId, error)),
    // It was lost with its runner before the player came in: who asks again gets another.
    Effect.catchTag("room_not_found", () => Effect.fail(new Unavailable()))
  )
})

/** Waits for a match and comes into its room; the connection holds the ticket until then. */
export const quickMatch = Effect.fnUntraced(function* (
  connection: PlayerConnection,
  { mode }: FramePayload<"quickMatch">
) {
  const wait = yield* connection.steps.withPermits(1)(takeTicket(connection, mode))
  return yield* Effect.ensuring(
    takeMatch(connection, wait),
    Effect.sync(() => {
      if (connection.ticket?.ticketId === wait.ticketId) connection.ticket = undefined
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

/** What a config push means for the tickets that wait on this node (decisions 3.7.18). */
export const followModes = Effect.fnUntraced(function* (environmentId: EnvironmentId) {
  const hub = yield* Hub
  const configs = yield* Configs
  const { config } = yield* configs.current(environmentId)
  for (const link of Array.from(hub.queues.values())) {
    if (link.environmentId !== environmentId) continue
    if (!config.features.multiplayer) link.failAll(new MatchCancelled())
    else if (findMode(config, link.mode) === undefined) link.failAll(new ModeNotFound())
    else link.configure(yield* queueSettings(environmentId, link.mode))
  }
})
