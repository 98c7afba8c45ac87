/**
 * The realtime protocol: one `RpcGroup` whose procedures are the client frames and whose `events`
 * stream carries all events of the service.
 *
 * Two endpoints serve it with the same handlers. `/v1/realtime` uses JSON: `{ t, rid?, ...payload }`
 * up, `{ t: "reply", rid, ok, data | error }` and events down. `/v1/rpc` uses Effect RPC.
 */
import { Schema } from "effect"
import { Rpc } from "effect/rpc"
import { ChannelEvent, ChannelFrames } from "./channels/frames.ts"
import {
  FeatureDisabled,
  FeatureUnavailable,
  InvalidKey,
  OriginNotAllowed,
  PlayerBanned,
  PlayerRequired,
  RateLimited,
  SessionRevoked,
  TokenExpired,
  Unauthorized,
  Unavailable,
  WireError
} from "./errors/codes.ts"
import { MatchmakingFrames } from "./matchmaking.ts"
import { PeerFrames } from "./peers.ts"
import { frame } from "./frames.ts"
import { RoomEvent } from "./rooms/events.ts"
import { RoomFrames } from "./rooms/frames.ts"
import { Timestamp } from "./text.ts"
import { VoiceEvent, VoiceFrames } from "./voice.ts"

export const ridMaxCharacters = 64

// Opening --------------------------------------------------------------------------------------

/** The first frame of a socket, within five seconds. Later, `{ t: "auth", token }` renews the token. */
export const AuthFrame = Schema.Struct({
  t: Schema.Literal("auth"),
  rid: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(ridMaxCharacters))),
  key: Schema.optionalKey(Schema.String),
  token: Schema.optionalKey(Schema.String),
  anon: Schema.optionalKey(Schema.Boolean)
})
export type AuthFrame = typeof AuthFrame.Type

/** A seat that is reserved for `resume`. */
export const HeldSeat = Schema.Struct({
  roomId: Schema.String,
  code: Schema.String,
  mode: Schema.String,
  graceUntil: Timestamp
})
export type HeldSeat = typeof HeldSeat.Type

/** The reply to `auth`. `serverTime` is Unix milliseconds. */
export const Welcome = Schema.Struct({
  t: Schema.Literal("welcome"),
  connectionId: Schema.String,
  playerId: Schema.NullOr(Schema.String),
  serverTime: Schema.Int,
  heartbeatSeconds: Schema.Int,
  tokenExpiresAt: Schema.NullOr(Timestamp),
  rooms: Schema.Array(HeldSeat)
})
export type Welcome = typeof Welcome.Type

/** A problem without a call to reject: a failed frame without `rid`, or a token about to expire. */
export const Warn = Schema.Struct({
  t: Schema.Literal("warn"),
  code: Schema.String,
  message: Schema.String,
  details: Schema.optionalKey(Schema.Unknown)
})
export type Warn = typeof Warn.Type

/** Union of all events that the service sends to a connection, except replies. */
export const ServerEvent = Schema.Union([
  Welcome,
  Warn,
  // Those of channels first: their `player_updated` has one field more than that of rooms.
  ...ChannelEvent.members,
  ...RoomEvent.members,
  ...VoiceEvent.members
])
export type ServerEvent = typeof ServerEvent.Type

/** A reply in its JSON form. */
export const Reply = Schema.Struct({
  t: Schema.Literal("reply"),
  rid: Schema.String,
  ok: Schema.Boolean,
  data: Schema.optionalKey(Schema.Unknown),
  error: Schema.optionalKey(WireError)
})
export type Reply = typeof Reply.Type

export { type CloseCode, closeCodes } from "./close-codes.ts"

// Group ----------------------------------------------------------------------------------------

/** Returns the service's clock. Browsers cannot send pings; this measures the round trip. */
export const ping = frame("ping", "Get the service's clock", {
  success: Schema.Struct({ at: Schema.Int }),
  errors: []
})

/** Frames of the feature `multiplayer`. */
class MultiplayerFrames extends RoomFrames.merge(MatchmakingFrames, PeerFrames) {}

/** Frames of the feature `realtimeChannels`. */
class RealtimeChannelFrames extends ChannelFrames.merge(VoiceFrames) {}

/** All client frames. */
export class ClientFrames extends MultiplayerFrames.merge(RealtimeChannelFrames).add(ping) {}

type RealtimeFeature = "multiplayer" | "realtimeChannels"

const featuresByFrame = new Map<string, RealtimeFeature>([
  ...Array.from(MultiplayerFrames.requests.keys(), (t) => [t, "multiplayer"] as const),
  ...Array.from(RealtimeChannelFrames.requests.keys(), (t) => [t, "realtimeChannels"] as const)
])

/** Returns the feature of a frame; undefined for `ping`, and for a type that no frame has. */
export const featureOfFrame = (t: string): RealtimeFeature | undefined => featuresByFrame.get(t)

/** Reason for which an events stream did not open, or has ended. */
export const EventsError = Schema.Union([
  InvalidKey,
  Unauthorized,
  TokenExpired,
  SessionRevoked,
  PlayerRequired,
  PlayerBanned,
  OriginNotAllowed,
  FeatureDisabled,
  FeatureUnavailable,
  RateLimited,
  Unavailable
])

/**
 * Native RPC only: opens the connection and receives its events. The stream is the connection. The
 * other procedures act for it, and ending it disconnects the player like a closed socket.
 */
export const events = Rpc.make("events", { success: ServerEvent, error: EventsError, stream: true })

/** All procedures of `/v1/rpc`. */
export class RealtimeRpcs extends ClientFrames.add(events) {}
