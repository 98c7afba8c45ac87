/**
 * Seats in rooms, for the frames of rooms, matchmaking and peers. A connection that takes a seat first
 * claims it from the player's session, then enters the room.
 */
import { Effect } from "effect"
import { findMode, type Mode } from "#rpc/config-document/multiplayer"
import { type CodedError, ModeNotFound, NotInRoom } from "#rpc/errors/codes"
import type { EnvironmentId } from "#rpc/ids"
import type { JsonObject } from "#rpc/json"
import type { OpenRoom, PlayerCommand } from "#entities/room/messages"
import { Hub } from "#server/links/hub"
import type { PlayerConnection } from "#server/links/player-connection"
import type { RoomHandle } from "#server/links/subscriber"
import { Configs } from "../config/service.ts"

/** What the host of a room of this mode may do to others. */
const powersOf = ({ assign, authority, teams }: Mode, matched: boolean): ReadonlyArray<string> => {
  if (matched) return authority.matchedHost
  return assign === "host" && teams.length > 0 ? [...authority.host, "team"] : authority.host
}

/** The rights of a room, as far as its mode declares them. */
const rightsOf = (mode: Mode, matched: boolean) => {
  const powers = powersOf(mode, matched)
  const { votes } = mode.authority
  const teams = mode.teams.map(({ key, max, min }) => ({ key, max, min }))
  return {
    ...(powers.length === 0 ? {} : { powers }),
    ...(votes.length === 0 ? {} : { votes }),
    ...(teams.length === 0 ? {} : { teams }),
    ...(mode.assign === "free" ? { freeTeams: true } : {})
  }
}

/** Returns the settings of a room with the defaults of its mode, created by a player or `matched`. */
export const roomOfMode = (environmentId: string, mode: Mode, matched = false): OpenRoom => ({
  environmentId,
  mode: mode.key,
  private: false,
  transport: mode.transport,
  p2p:
    mode.transport === "p2p"
      ? { relayOnly: mode.p2p.relayOnly, maxPlayers: mode.p2p.maxPlayers }
      : null,
  hostOnlyState: false,
  maxPlayers: mode.maxPlayers,
  metadata: {},
  graceSeconds: mode.reconnectSeconds,
  matched,
  ...(mode.durable ? { durable: true } : {}),
  ...rightsOf(mode, matched),
  code: null,
  joiningPlayers: []
})

/** Finds a mode by its key in the environment's current config. */
export const modeOf = Effect.fnUntraced(function* (environmentId: EnvironmentId, key: string) {
  const configs = yield* Configs
  const { config } = yield* configs.current(environmentId)
  return findMode(config, key) ?? (yield* new ModeNotFound())
})

const roomRef = (data: JsonObject) => ({
  roomId: String(data["roomId"]),
  code: String(data["code"])
})

/** Player of a connection, in the form in which a room seats it. */
export const joiningPlayerOf = (node: string, connection: PlayerConnection) => ({
  playerId: connection.playerId,
  displayName: connection.displayName,
  relayOnly: connection.relayOnly,
  blocks: connection.blocks,
  node,
  connectionId: connection.connectionId
})

/**
 * Closes a room that a player entered while a push disabled multiplayer. A push finds only the rooms
 * that are open at that moment. The node repeats a push whose look-up fails.
 */
const closeIfDisabled = Effect.fnUntraced(function* (environmentId: EnvironmentId, roomId: string) {
  const configs = yield* Configs
  const hub = yield* Hub
  const { config } = yield* configs.current(environmentId)
  if (config.features.multiplayer) return
  yield* Effect.ignore(hub.roomClient(roomId).Close({ reason: "feature_disabled" }))
})

/** Enters a room in which the player may have, or has, a seat. */
export const enterRoom = Effect.fnUntraced(function* (
  connection: PlayerConnection,
  roomId: string,
  t: "join" | "resume" = "join"
) {
  const hub = yield* Hub
  const command = { t, ...joiningPlayerOf(hub.node, connection) } as const
  // Open and send in one step: an idle link may end at any moment.
  const entered = Effect.callback<JsonObject, CodedError>((resume) =>
    hub.rooms.open(connection.environmentId, roomId).send(command, (result) => {
      resume(result.ok ? Effect.succeed(result.data) : Effect.fail(result.error))
    })
  )
  const data = yield* entered
  yield* Effect.catchDefect(closeIfDisabled(connection.environmentId, roomId), () => Effect.void)
  return roomRef(data)
})

/**
 * Releases the seat of a room that the player did not enter. Forgets a seat that the player may have
 * taken.
 */
export const releaseSeat = (connection: PlayerConnection, roomId: string, error: CodedError) =>
  Effect.suspend(() => {
    const { reservations } = connection
    if (connection.room?.roomId === roomId) return Effect.void
    if (error._tag !== "unavailable") return reservations.release({ kind: "seat", roomId })
    return Effect.sync(() => reservations.forgetUnconfirmed(roomId))
  })

/** Claims a seat and runs an effect that takes it. */
export const withSeat = Effect.fnUntraced(function* <A, R>(
  connection: PlayerConnection,
  roomId: string,
  effect: Effect.Effect<A, CodedError, R>
) {
  yield* connection.reservations.claim({ kind: "seat", roomId })
  return yield* Effect.tapError(effect, (error) => releaseSeat(connection, roomId, error))
})

/**
 * Sends a command to the connection's room. Fails with `not_in_room` if the room no longer exists.
 */
export const requestOfRoom = (room: RoomHandle, command: PlayerCommand) =>
  Effect.mapError(room.request(command), (error) =>
    error._tag === "room_not_found" ? new NotInRoom() : error
  )

/** Leaves the room. No failure in a cluster restores the seat after the reply. */
export const leaveRoom = Effect.fnUntraced(function* (
  connection: PlayerConnection,
  room: RoomHandle
) {
  const { connectionId, playerId, reservations } = connection
  // The seat may be gone already: the room is over, or an earlier leave has had no reply yet.
  yield* requestOfRoom(room, { t: "leave", playerId, connectionId, reason: "left" }).pipe(
    Effect.catchTag("not_in_room", () => Effect.void)
  )
  connection.leftRoom()
  yield* reservations.release({ kind: "seat", roomId: room.roomId })
  return {}
})
