/**
 * The live view of a room: a snapshot, and each later event applied to it. Pure; every change makes
 * a new value, so `===` tells whether something changed. Events come in the room's one order, and a
 * snapshot replaces everything (spec sections 4.4 and 6).
 */
import type { JsonObject, RoomEvent, RoomPlayer, RoomSnapshot } from "#rpc/rooms"

/** Null deletes a key. `fromEntries` defines own members only, so no key reaches a prototype. */
const merge = (members: JsonObject, patch: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries({ ...members, ...patch }).filter(([, value]) => value !== null))

const without = (room: RoomSnapshot, playerId: string): ReadonlyArray<RoomPlayer> =>
  room.players.filter(({ id }) => id !== playerId)

const change = (
  room: RoomSnapshot,
  playerId: string,
  update: (player: RoomPlayer) => RoomPlayer
): RoomSnapshot => ({
  ...room,
  players: room.players.map((player) => (player.id === playerId ? update(player) : player))
})

/** The room after an event. */
export const applyEvent = (room: RoomSnapshot, event: RoomEvent): RoomSnapshot => {
  switch (event.t) {
    case "room_joined":
      return event.room
    case "player_joined":
      return { ...room, players: [...without(room, event.player.id), event.player] }
    case "player_left":
      return { ...room, players: without(room, event.playerId) }
    case "player_disconnected":
      return change(room, event.playerId, (player) => ({ ...player, connected: false }))
    case "player_reconnected":
      return change(room, event.playerId, (player) => ({ ...player, connected: true }))
    case "host_changed":
      return { ...room, hostId: event.hostId }
    case "state":
      return { ...room, state: merge(room.state, event.patch), version: event.version }
    case "player_state":
      return change(room, event.playerId, (player) => ({
        ...player,
        state: merge(player.state, event.patch)
      }))
    case "locked":
      return { ...room, locked: event.locked }
    case "message":
    case "signal":
    case "room_closed":
      return room
  }
}
