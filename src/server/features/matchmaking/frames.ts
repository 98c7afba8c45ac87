/**
 * Frames of matchmaking. The connection claims a ticket from the player's session. The ticket waits in
 * the queue of its mode, and becomes a seat when the session confirms it.
 */
import { Clock, type Context, Effect, Metric } from "effect"
import type { SecureRandom } from "effect/crypto"
import { findMode } from "#rpc/config-document/multiplayer"
import {
  MatchCancelled,
  ModeNotFound,
  NotInRoom,
  NotMatching,
  Unavailable
} from "#rpc/errors/codes"
import { type EnvironmentId, newId } from "#rpc/ids"
import type { QueueSettings } from "#entities/matchmaking-queue/protocol"
import { replyWith } from "#server/links/frame-effects"
import type { FrameHandlers, FramePayload } from "#server/links/frame-handler"
import { Hub } from "#server/links/hub"
import type { HeldTicket, PlayerConnection } from "#server/links/player-connection"
import { Configs } from "../config/service.ts"
import { enterRoom, joiningPlayerOf, leaveRoom, releaseSeat, roomOfMode } from "../rooms/service.ts"

/** Services that the frames of matchmaking need. */
export type MatchmakingServices = Hub | Configs | SecureRandom.SecureRandom

/** The settings of a mode's queue in the environment's current config. */
const queueSettings = Effect.fnUntraced(function* (environmentId: EnvironmentId, key: string) {
  const configs = yield* Configs
  const { config, version } = yield* configs.current(environmentId)
  const mode = findMode(config, key) ?? (yield* new ModeNotFound())
  const settings: QueueSettings = {
    configVersion: version,
    minPlayers: mode.minPlayers,
    fillTimeoutSeconds: mode.fillTimeoutSeconds,
    room: roomOfMode(environmentId, mode, true)
  }
  return settings
})

/** Claimed ticket and the settings of its queue. */
interface ClaimedTicket extends HeldTicket {
  readonly settings: QueueSettings
}

/** Claims a ticket. The player can cancel it from then on. */
const claimTicket = Effect.fnUntraced(function* (connection: PlayerConnection, mode: string) {
  const settings = yield* queueSettings(connection.environmentId, mode)
  const ticketId = yield* newId.ticket
  yield* connection.reservations.claim({ kind: "ticket", ticketId })
  const ticket: ClaimedTicket = { ticketId, mode, settings }
  connection.holdTicket(ticket)
  return ticket
})

export const matchWaitSeconds = Metric.histogram("svc_match_wait_seconds", {
  description: "Time that tickets waited for their match; cancelled tickets are not counted.",
  boundaries: [0.1, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300]
})

/** Waits for the room of a match. */
const waitForMatch = Effect.fnUntraced(function* (
  connection: PlayerConnection,
  { mode, settings, ticketId }: ClaimedTicket
) {
  const hub = yield* Hub
  const joiningPlayer = joiningPlayerOf(hub.node, connection)
  const startedAt = yield* Clock.currentTimeMillis
  const roomId = yield* hub.queues
    .open(connection.environmentId, mode)
    .wait({ t: "enqueue", ticketId, joiningPlayer, settings, roomId: yield* hub.newRoomId })
  yield* Metric.update(matchWaitSeconds, ((yield* Clock.currentTimeMillis) - startedAt) / 1000)
  return roomId
})

/** Leaves the seat of a match that the session did not confirm. */
const leaveSeat = Effect.fnUntraced(function* (connection: PlayerConnection, roomId: string) {
  const hub = yield* Hub
  const { connectionId, environmentId, playerId } = connection
  const link = hub.rooms.open(environmentId, roomId)
  yield* Effect.ignore(link.request({ t: "leave", playerId, connectionId, reason: "left" }))
  link.closeIfIdle()
})

/** Waits with a claimed ticket, and takes the seat of its match. */
const takeMatch = Effect.fnUntraced(function* (
  connection: PlayerConnection,
  ticket: ClaimedTicket
) {
  const { ticketId } = ticket
  const { reservations } = connection
  const releaseTicket = reservations.release({ kind: "ticket", ticketId })
  const roomId = yield* Effect.onError(waitForMatch(connection, ticket), () => releaseTicket)
  yield* reservations.confirm(ticketId, roomId).pipe(
    Effect.tapError(() => Effect.andThen(leaveSeat(connection, roomId), releaseTicket)),
    Effect.mapError(() => new MatchCancelled())
  )
  return yield* enterRoom(connection, roomId).pipe(
    Effect.tapError((error) => releaseSeat(connection, roomId, error)),
    // The room was lost with its runner before the player entered: the player can match again.
    Effect.catchTag("room_not_found", () => Effect.fail(new Unavailable()))
  )
})

/** Waits for a match and enters its room; the connection holds the ticket until then. */
const quickMatch = Effect.fnUntraced(function* (
  connection: PlayerConnection,
  { mode }: FramePayload<"quickMatch">
) {
  const ticket = yield* connection.inOrder(claimTicket(connection, mode))
  return yield* Effect.ensuring(
    takeMatch(connection, ticket),
    Effect.sync(() => connection.dropTicket(ticket.ticketId))
  )
})

/** Removes the connection's ticket from its queue. */
const cancelMatch = Effect.fnUntraced(function* (connection: PlayerConnection) {
  const hub = yield* Hub
  const { environmentId, ticket } = connection
  if (ticket === undefined) return yield* new NotMatching()
  const cancelled = yield* hub.queues.open(environmentId, ticket.mode).cancel(ticket.ticketId)
  return { cancelled }
})

/** Leaves the room, or the queue. */
const leave = Effect.fnUntraced(function* (connection: PlayerConnection) {
  if (connection.room !== undefined) return yield* leaveRoom(connection, connection.room)
  if (connection.ticket === undefined) return yield* new NotInRoom()
  const { cancelled } = yield* cancelMatch(connection)
  if (!cancelled) return yield* new NotInRoom()
  return {}
})

/** Handlers of a player's frames for matchmaking, and of `leave`, which also leaves a queue. */
export const matchmakingFrames = (
  services: Context.Context<MatchmakingServices>
): Pick<FrameHandlers, "cancelMatch" | "leave" | "quickMatch"> => {
  const effectful = replyWith(services)
  return {
    quickMatch: effectful("quickMatch", quickMatch),
    cancelMatch: effectful("cancelMatch", (connection: PlayerConnection) =>
      connection.inOrder(cancelMatch(connection))
    ),
    leave: effectful("leave", (connection: PlayerConnection) =>
      connection.inOrder(leave(connection))
    )
  }
}

/** Applies a config push to the tickets of this node; fails those whose mode is gone. */
export const applyModes = Effect.fnUntraced(function* (environmentId: EnvironmentId) {
  const hub = yield* Hub
  const configs = yield* Configs
  const { config } = yield* configs.current(environmentId)
  for (const link of hub.queues.inEnvironment(environmentId)) {
    if (!config.features.multiplayer) link.failAll(new MatchCancelled())
    else if (findMode(config, link.name) === undefined) link.failAll(new ModeNotFound())
    else link.configure(yield* queueSettings(environmentId, link.name))
  }
})
