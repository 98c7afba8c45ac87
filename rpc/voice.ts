/**
 * Voice calls of channels. Up to 8 people connect to each other (`p2p`); the service relays their
 * signals. More people send to a media server (`sfu`), which forwards the loudest speakers.
 */
import { Schema } from "effect"
import { OpenApi } from "effect/http-api"
import { Rpc, RpcGroup } from "effect/rpc"
import { VoiceMode } from "./channels/frames.ts"
import {
  NotInChannel,
  PayloadTooLarge,
  VoiceDisabled,
  VoiceSuspended,
  VoiceUnavailable
} from "./errors/codes.ts"
import { feature } from "./feature.ts"
import { voice as limits } from "./limits.ts"
import { IceServers } from "./peers.ts"
import { commonFrameErrors, MessageData, SignalKind } from "./rooms.ts"

const ChannelReference = Schema.String.check(Schema.isMaxLength(128))
const SessionReference = Schema.String.check(Schema.isMaxLength(64))
const Sdp = Schema.String.check(Schema.isMaxLength(limits.sdpMaxCharacters))

const callErrors = [...commonFrameErrors, NotInChannel, VoiceUnavailable] as const

const Done = Schema.Struct({})

/**
 * Joins the call of a channel that the connection is in. With the `session` of an attachment that still
 * lives, the player returns to it after a new connection; else a new session replaces it.
 */
export const voiceJoin = Rpc.make("voiceJoin", {
  payload: { channel: ChannelReference, session: Schema.optionalKey(SessionReference) },
  success: Schema.Struct({
    mode: VoiceMode,
    /** Id of this attachment of the player to the call. */
    session: Schema.String,
    /** Whether members must not learn the player's address. */
    relayOnly: Schema.Boolean,
    ...IceServers.fields
  }),
  error: Schema.Union([...callErrors, VoiceDisabled, VoiceSuspended])
}).annotate(OpenApi.Summary, "Join the voice call of a channel")

/** Leaves the call. Succeeds for a player who is not in it. */
export const voiceLeave = Rpc.make("voiceLeave", {
  payload: { channel: ChannelReference },
  success: Done,
  error: Schema.Union([...callErrors])
}).annotate(OpenApi.Summary, "Leave the voice call of a channel")

/**
 * Sends a signal to one other member of a peer-to-peer call. The member with the smaller id makes the
 * offer; `restart` asks it for another one. `gen` counts the attempts of a pair.
 */
export const voiceSignal = Rpc.make("voiceSignal", {
  payload: {
    channel: ChannelReference,
    to: Schema.String.check(Schema.isBetweenLength(1, 64)),
    kind: SignalKind,
    data: Schema.optionalKey(MessageData),
    gen: Schema.optionalKey(Schema.Int)
  },
  success: Schema.Struct({ delivered: Schema.Int }),
  error: Schema.Union([...callErrors, PayloadTooLarge])
}).annotate(OpenApi.Summary, "Send a WebRTC signal to one member of the call")

const Candidate = Schema.Struct({ candidate: Schema.String, sdpMid: Schema.String })

/**
 * Answers `voice_sfu_offer`. The reply carries the candidates of the media server: add them after
 * the local description. The service ignores an answer to an older offer, whose reply has no
 * candidates.
 */
export const voiceAnswer = Rpc.make("voiceAnswer", {
  payload: { channel: ChannelReference, session: SessionReference, gen: Schema.Int, sdp: Sdp },
  success: Schema.Struct({ candidates: Schema.Array(Candidate) }),
  error: Schema.Union(callErrors)
}).annotate(OpenApi.Summary, "Answer an offer of the media server")

/** Opens or closes the microphone. Nobody hears a player who may not speak, whatever it sends. */
export const voicePublish = Rpc.make("voicePublish", {
  payload: { channel: ChannelReference, session: SessionReference, on: Schema.Boolean },
  success: Schema.Struct({ on: Schema.Boolean, canSpeak: Schema.Boolean }),
  error: Schema.Union([...callErrors])
}).annotate(OpenApi.Summary, "Open or close the microphone")

/** Reports that the player begins or ends to speak. The measured level decides; this is a hint. */
export const voiceSpeaking = Rpc.make("voiceSpeaking", {
  payload: { channel: ChannelReference, session: SessionReference, speaking: Schema.Boolean },
  success: Done,
  error: Schema.Union([...callErrors])
}).annotate(OpenApi.Summary, "Hint that the player begins or ends to speak")

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
