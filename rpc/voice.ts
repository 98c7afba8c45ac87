/**
 * Voice calls of channels. Up to 8 people connect to each other (`p2p`); the service relays their
 * signals. More people send to a media server (`sfu`), which forwards the loudest speakers.
 */
import { Schema } from "effect"
import { RpcGroup } from "effect/rpc"
import { ChannelReference, VoiceMode } from "./channels/frames.ts"
import {
  NotInChannel,
  PayloadTooLarge,
  VoiceDisabled,
  VoiceSuspended,
  VoiceUnavailable
} from "./errors/codes.ts"
import { feature } from "./feature.ts"
import { IceServers } from "./peers.ts"
import { Done, frame } from "./frames.ts"
import { MessageData } from "./json.ts"
import { SignalKind } from "./rooms/events.ts"
import { KiB } from "./units.ts"

export const sdpMaxCharacters = 32 * KiB

const SessionReference = Schema.String.check(Schema.isMaxLength(64))
const Sdp = Schema.String.check(Schema.isMaxLength(sdpMaxCharacters))

const callErrors = [NotInChannel, VoiceUnavailable] as const

/**
 * Joins the call of a channel that the connection is in. With the `session` of an attachment that still
 * lives, the player returns to it after a new connection; else a new session replaces it.
 */
export const voiceJoin = frame("voiceJoin", "Join the voice call of a channel", {
  payload: { channel: ChannelReference, session: Schema.optionalKey(SessionReference) },
  success: Schema.Struct({
    mode: VoiceMode,
    /** Id of this attachment of the player to the call. */
    session: Schema.String,
    /** Whether members must not learn the player's address. */
    relayOnly: Schema.Boolean,
    ...IceServers.fields
  }),
  errors: [...callErrors, VoiceDisabled, VoiceSuspended]
})

/** Leaves the call. Succeeds for a player who is not in it. */
export const voiceLeave = frame("voiceLeave", "Leave the voice call of a channel", {
  payload: { channel: ChannelReference },
  success: Done,
  errors: callErrors
})

/**
 * Sends a signal to one other member of a peer-to-peer call. The member with the smaller id makes the
 * offer; `restart` asks it for another one. `gen` counts the attempts of a pair.
 */
export const voiceSignal = frame("voiceSignal", "Send a WebRTC signal to one member of the call", {
  payload: {
    channel: ChannelReference,
    to: Schema.String.check(Schema.isBetweenLength(1, 64)),
    kind: SignalKind,
    data: Schema.optionalKey(MessageData),
    gen: Schema.optionalKey(Schema.Int)
  },
  success: Schema.Struct({ delivered: Schema.Int }),
  errors: [...callErrors, PayloadTooLarge]
})

const Candidate = Schema.Struct({ candidate: Schema.String, sdpMid: Schema.String })

/**
 * Answers `voice_sfu_offer`. The reply carries the candidates of the media server: add them after
 * the local description. The service ignores an answer to an older offer, whose reply has no
 * candidates.
 */
export const voiceAnswer = frame("voiceAnswer", "Answer an offer of the media server", {
  payload: { channel: ChannelReference, session: SessionReference, gen: Schema.Int, sdp: Sdp },
  success: Schema.Struct({ candidates: Schema.Array(Candidate) }),
  errors: callErrors
})

/** Opens or closes the microphone. Nobody hears a player who may not speak, whatever it sends. */
export const voicePublish = frame("voicePublish", "Open or close the microphone", {
  payload: { channel: ChannelReference, session: SessionReference, on: Schema.Boolean },
  success: Schema.Struct({ on: Schema.Boolean, canSpeak: Schema.Boolean }),
  errors: callErrors
})

/** Reports that the player begins or ends to speak. The measured level decides; this is a hint. */
export const voiceSpeaking = frame(
  "voiceSpeaking",
  "Hint that the player begins or ends to speak",
  {
    payload: { channel: ChannelReference, session: SessionReference, speaking: Schema.Boolean },
    success: Done,
    errors: callErrors
  }
)

export class VoiceFrames extends RpcGroup.make(
  voiceJoin,
  voiceLeave,
  voiceSignal,
  voiceAnswer,
  voicePublish,
  voiceSpeaking
) {}

// Events ---------------------------------------------------------------------------------------

const event = <const T extends string, const Fields extends Schema.Struct.Fields>(
  t: T,
  fields: Fields
) => Schema.Struct({ t: Schema.Literal(t), channel: Schema.String, ...fields })

/** Reason for the end of a call. After `unavailable`, join again after `retryAfterMs`. */
export const VoiceCloseReason = Schema.Literals(["time_limit", "suspended", "unavailable"])
export type VoiceCloseReason = typeof VoiceCloseReason.Type

/** A member of a call. A new `session` needs a new peer connection. */
export const VoiceMember = Schema.Struct({
  id: Schema.String,
  session: Schema.String,
  canSpeak: Schema.Boolean,
  /** Whether the microphone is open. */
  publishing: Schema.Boolean
})
export type VoiceMember = typeof VoiceMember.Type

/**
 * Events of a call, for its members. `voice_state` lists all of them. `voice_sfu_offer` has no
 * candidates. `voice_speaking` names who is on each slot that has changed.
 */
export const VoiceEvent = Schema.Union([
  event("voice_state", { members: Schema.Array(VoiceMember) }),
  event("voice_signal", {
    from: Schema.String,
    kind: SignalKind,
    data: Schema.optionalKey(Schema.Unknown),
    gen: Schema.optionalKey(Schema.Int)
  }),
  event("voice_sfu_offer", {
    session: Schema.String,
    gen: Schema.Int,
    sdp: Schema.String,
    publishMid: Schema.String,
    slots: Schema.Array(Schema.String)
  }),
  event("voice_speaking", {
    slots: Schema.Record(Schema.String, Schema.NullOr(Schema.String))
  }),
  event("voice_closed", {
    reason: VoiceCloseReason,
    retryAfterMs: Schema.optionalKey(Schema.Int)
  })
])
export type VoiceEvent = typeof VoiceEvent.Type

export const voiceFeature = feature({
  word: "voice",
  groups: []
})
