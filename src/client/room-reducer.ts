/**
 * Reducer for the view of a room: a snapshot, and each later event applied to it. Pure. Every change
 * makes a new object, so `===` detects changes. All members receive the events in the same order; a
 * snapshot replaces the whole view.
 */
import type { JsonObject, RoomEvent, RoomPlayer, RoomSnapshot } from "./wire.ts"

/**
 * Merges a patch; null deletes a key. `fromEntries` defines only own properties, so no key reaches a
 * prototype.
 */
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

/** Returns the room after an event. */
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
    case "player_updated":
      return change(room, event.player.id, (player) => ({ ...player, ...event.player }))
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
    case "muted":
      return change(room, event.playerId, ({ muted: _, ...player }) =>
        event.muted ? { ...player, muted: true } : player
      )
    case "teams":
      return { ...room, teams: event.teams }
    case "vote": {
      const { vote: _, ...rest } = room
      const { state, t, ...vote } = event
      return state === "open" ? { ...rest, vote } : rest
    }
    // Among them those of newer services.
    default:
      return room
  }
}
