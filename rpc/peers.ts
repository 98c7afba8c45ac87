/**
 * Peer-to-peer rooms (spec section 4.4, decisions 3.7.15 and 3.7.16): the service carries the
 * signals by which two members set up a WebRTC connection, and tells which STUN and TURN servers to
 * use. Game messages then go from player to player.
 */
import { Schema } from "effect"
import { OpenApi } from "effect/http-api"
import { Rpc, RpcGroup } from "effect/rpc"
import {
  NotInRoom,
  P2pOnly,
  PayloadTooLarge,
  PlayerNotInRoom,
  TurnUnavailable
} from "./errors/codes.ts"
import { commonFrameErrors, MessageData, SignalKind } from "./rooms.ts"

/**
 * A step of the set-up for one other member: an SDP offer or answer, an ICE candidate, or the wish to
 * start anew. `gen` counts the attempts; the service passes it on unread. Where either of the two is
 * relayed, candidates other than relay ones are taken out; a candidate of which nothing is left is
 * not delivered.
 */
export const signal = Rpc.make("signal", {
  payload: {
    to: Schema.String.check(Schema.isBetweenLength(1, 64)),
    kind: SignalKind,
    data: Schema.optionalKey(MessageData),
    gen: Schema.optionalKey(Schema.Int)
  },
  success: Schema.Struct({ delivered: Schema.Int }),
  error: Schema.Union([...commonFrameErrors, NotInRoom, P2pOnly, PlayerNotInRoom, PayloadTooLarge])
}).annotate(OpenApi.Summary, "A step of a WebRTC set-up, for one other member")

/** Where ICE finds its way: the `RTCIceServer` of WebRTC. */
export const IceServer = Schema.Struct({
  urls: Schema.Array(Schema.String),
  username: Schema.optionalKey(Schema.String),
  credential: Schema.optionalKey(Schema.String)
})
export type IceServer = typeof IceServer.Type

/** `relay` where the player's address must not be seen, else `all`. */
export const IceTransportPolicy = Schema.Literals(["relay", "all"])
export type IceTransportPolicy = typeof IceTransportPolicy.Type

/** The first two members are an `RTCConfiguration` as it is; the credentials are good for an hour. */
export const IceServers = Schema.Struct({
  iceServers: Schema.Array(IceServer),
  iceTransportPolicy: IceTransportPolicy,
  /** ISO 8601 UTC: ask again before. */
  expiresAt: Schema.String
})
export type IceServers = typeof IceServers.Type

/** The STUN and TURN servers for this player's connections in this room. */
export const iceServers = Rpc.make("iceServers", {
  success: IceServers,
  error: Schema.Union([...commonFrameErrors, NotInRoom, P2pOnly, TurnUnavailable])
}).annotate(OpenApi.Summary, "STUN and TURN servers, with short-lived credentials")

export class PeerFrames extends RpcGroup.make(signal, iceServers) {}
