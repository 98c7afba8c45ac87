/**
 * The calls of the voice session entity. Its id is that of the channel, so it lives on the same shard,
 * and reads the channel's members without a call. Events reach members over the channel's watchers.
 */
import { Schema } from "effect"
import { Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { VoiceMode } from "#rpc/channels/frames"
import { InvalidFrame, NotInChannel, VoiceDisabled, VoiceUnavailable } from "#rpc/errors/codes"
import { SignalKind } from "#rpc/rooms/events"

const connection = { playerId: Schema.String, connectionId: Schema.String }
const session = { playerId: Schema.String, session: Schema.String }
const error = Schema.Union([NotInChannel, VoiceUnavailable])

export const VoiceSession = Entity.make("VoiceSession", [
  Rpc.make("Join", {
    payload: {
      ...connection,
      /** Whether peers may not learn the player's address. */
      relayOnly: Schema.Boolean,
      /** The session to return to. */
      session: Schema.optionalKey(Schema.String)
    },
    success: Schema.Struct({
      mode: VoiceMode,
      session: Schema.String,
      relayOnly: Schema.Boolean
    }),
    error: Schema.Union([NotInChannel, VoiceDisabled, VoiceUnavailable])
  }),
  Rpc.make("Leave", { payload: connection, error }),
  /** Sends a signal; returns the number of receivers. */
  Rpc.make("Signal", {
    payload: {
      ...connection,
      to: Schema.String,
      kind: SignalKind,
      data: Schema.optionalKey(Schema.Unknown),
      gen: Schema.optionalKey(Schema.Int)
    },
    success: Schema.Int,
    error
  }),
  /** Accepts the answer to an offer. Returns the candidates of the media server. */
  Rpc.make("Answer", {
    payload: { ...session, gen: Schema.Int, sdp: Schema.String },
    success: Schema.Array(Schema.Struct({ candidate: Schema.String, sdpMid: Schema.String })),
    error: Schema.Union([NotInChannel, VoiceUnavailable, InvalidFrame])
  }),
  /** Opens or closes the microphone; returns whether the player may speak. */
  Rpc.make("Publish", {
    payload: { ...session, on: Schema.Boolean },
    success: Schema.Boolean,
    error
  }),
  Rpc.make("Speaking", { payload: { ...session, speaking: Schema.Boolean }, error })
])
