/**
 * Events of rooms, and the values in them. Timestamps are ISO 8601 UTC, except `at`, which is Unix
 * milliseconds.
 */
import { Schema } from "effect"
import { event } from "../frames.ts"
import { JsonObject } from "../json.ts"
import { Timestamp } from "../text.ts"
import { authorityEvents, OpenVote, RoomTeam } from "./authority.ts"

export const Transport = Schema.Literals(["server", "p2p"])

/** Member of a room; `state` is the state that it set with `setMyState`. */
export const RoomPlayer = Schema.Struct({
  id: Schema.String,
  displayName: Schema.String,
  connected: Schema.Boolean,
  joinedAt: Timestamp,
  state: JsonObject,
  /** Present while the player's messages are hidden. */
  muted: Schema.optionalKey(Schema.Literal(true))
})
export type RoomPlayer = typeof RoomPlayer.Type

/** A room as its members see it; `version` counts the changes of `state`. */
export const RoomSnapshot = Schema.Struct({
  id: Schema.String,
  code: Schema.String,
  mode: Schema.String,
  private: Schema.Boolean,
  locked: Schema.Boolean,
  transport: Transport,
  hostId: Schema.NullOr(Schema.String),
  hostOnlyState: Schema.Boolean,
  maxPlayers: Schema.Int,
  metadata: JsonObject,
  state: JsonObject,
  version: Schema.Int,
  createdAt: Timestamp,
  players: Schema.Array(RoomPlayer),
  p2p: Schema.optionalKey(Schema.Struct({ relayOnly: Schema.Boolean, maxPlayers: Schema.Int })),
  /** Present in modes with teams. */
  teams: Schema.optionalKey(Schema.Array(RoomTeam)),
  /** Present while a vote is open. */
  vote: Schema.optionalKey(OpenVote)
})
export type RoomSnapshot = typeof RoomSnapshot.Type

export const LeaveReason = Schema.Literals(["left", "timeout", "banned", "deleted", "kicked"])
export type LeaveReason = typeof LeaveReason.Type

/** Why the host changed: it has left the room, dropped, or passed the role on. */
export const HostChange = Schema.Literals([...LeaveReason.literals, "transferred"])
export type HostChange = typeof HostChange.Type

export const CloseReason = Schema.Literals(["empty", "idle", "feature_disabled", "lost"])
export type CloseReason = typeof CloseReason.Type

/** The kind of a WebRTC signal. */
export const SignalKind = Schema.Literals(["offer", "answer", "candidate", "restart"])
export type SignalKind = typeof SignalKind.Type

/** A player whose display name has changed. */
export const PlayerName = Schema.Struct({ id: Schema.String, displayName: Schema.String })

/** Events of a room. All members receive them in the same order. */
export const RoomEvent = Schema.Union([
  event("room_joined", {
    room: RoomSnapshot,
    playerId: Schema.String,
    resumed: Schema.Boolean
  }),
  event("player_joined", { player: RoomPlayer }),
  event("player_left", { playerId: Schema.String, reason: LeaveReason }),
  event("player_disconnected", { playerId: Schema.String, graceUntil: Timestamp }),
  event("player_reconnected", { playerId: Schema.String }),
  event("player_updated", { player: PlayerName }),
  event("host_changed", {
    hostId: Schema.String,
    previousHostId: Schema.NullOr(Schema.String),
    reason: HostChange
  }),
  event("state", { patch: JsonObject, from: Schema.String, version: Schema.Int }),
  event("player_state", { playerId: Schema.String, patch: JsonObject }),
  event("message", {
    from: Schema.String,
    type: Schema.String,
    data: Schema.optionalKey(Schema.Unknown),
    at: Schema.Int
  }),
  event("locked", { locked: Schema.Boolean }),
  event("signal", {
    from: Schema.String,
    kind: SignalKind,
    data: Schema.optionalKey(Schema.Unknown),
    gen: Schema.optionalKey(Schema.Int)
  }),
  ...authorityEvents,
  event("room_closed", { roomId: Schema.String, reason: CloseReason })
])
export type RoomEvent = typeof RoomEvent.Type
