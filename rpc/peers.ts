/**
 * Peer-to-peer rooms. The service relays the signals by which two members set up a WebRTC connection,
 * and returns the STUN and TURN servers to use. Game messages then travel between the players.
 */
import { Schema } from "effect"
import { RpcGroup } from "effect/rpc"
import {
  NotInRoom,
  P2pOnly,
  PayloadTooLarge,
  PlayerNotInRoom,
  TurnUnavailable
} from "./errors/codes.ts"
import { feature } from "./feature.ts"
import { frame } from "./frames.ts"
import { MessageData } from "./json.ts"
import { SignalKind } from "./rooms/events.ts"
import { Timestamp } from "./text.ts"

/**
 * Signal for one other member: an SDP offer or answer, an ICE candidate, or a restart request.
 * `gen` counts the attempts; the service forwards it unread. If either member needs a relay, the
 * service removes candidates of other types, and drops a signal that has none left.
 */
export const signal = frame("signal", "Send a WebRTC signal to one other member", {
  payload: {
    to: Schema.String.check(Schema.isBetweenLength(1, 64)),
    kind: SignalKind,
    data: Schema.optionalKey(MessageData),
    gen: Schema.optionalKey(Schema.Int)
  },
  success: Schema.Struct({ delivered: Schema.Int }),
  errors: [NotInRoom, P2pOnly, PlayerNotInRoom, PayloadTooLarge]
})

/** An ICE server: the `RTCIceServer` of WebRTC. */
export const IceServer = Schema.Struct({
  urls: Schema.Array(Schema.String),
  username: Schema.optionalKey(Schema.String),
  credential: Schema.optionalKey(Schema.String)
})
export type IceServer = typeof IceServer.Type

/** `relay` where the player's IP address must stay hidden, else `all`. */
export const IceTransportPolicy = Schema.Literals(["relay", "all"])
export type IceTransportPolicy = typeof IceTransportPolicy.Type

/** The first two members form an `RTCConfiguration`. The credentials are valid for an hour. */
export const IceServers = Schema.Struct({
  iceServers: Schema.Array(IceServer),
  iceTransportPolicy: IceTransportPolicy,
  /** ISO 8601 UTC; ask again before this time. */
  expiresAt: Timestamp
})
export type IceServers = typeof IceServers.Type

/** Returns the STUN and TURN servers for this player in this room. */
export const iceServers = frame(
  "iceServers",
  "Get STUN and TURN servers with short-lived credentials",
  {
    success: IceServers,
    errors: [NotInRoom, P2pOnly, TurnUnavailable]
  }
)

export class PeerFrames extends RpcGroup.make(signal, iceServers) {}

export const peersFeature = feature({
  word: "peers",
  groups: []
})
