/** Frames of voice calls. The frames of one connection to one channel run in order. */
import { type Context, Effect } from "effect"
import { type CodedError, PayloadTooLarge } from "#rpc/errors/codes"
import { KiB } from "#rpc/units"
import { jsonBytes } from "#entities/json-bytes"
import type { ChannelMembership } from "#server/links/channel-memberships"
import { replyWith } from "#server/links/frame-effects"
import type { FrameHandlers, FramePayload } from "#server/links/frame-handler"
import type { PlayerConnection } from "#server/links/player-connection"
import type { ChannelHandle } from "#server/links/subscriber"
import type { Configs } from "../config/service.ts"
import type { TurnServers } from "../peers/turn-servers.ts"
import { callVoice, joinCall, leaveCall, membershipFor, VoiceSessions } from "./service.ts"

export const signalDataMaxBytes = 8 * KiB
const joinFrames = 6

/** The services that the frames of voice calls need. */
export type VoiceServices = Configs | TurnServers | VoiceSessions

type VoiceFrameType =
  | "voiceJoin"
  | "voiceLeave"
  | "voiceSignal"
  | "voiceAnswer"
  | "voicePublish"
  | "voiceSpeaking"

/** Entity, and the payload of a frame without its channel. */
const called = <Payload extends { readonly channel: string }>(
  { environmentId }: PlayerConnection,
  { channel, ...payload }: Payload
) =>
  Effect.map(VoiceSessions, (sessions) => ({
    entity: sessions.of(environmentId, channel),
    payload
  }))

const signal = Effect.fnUntraced(function* (
  connection: PlayerConnection,
  frame: FramePayload<"voiceSignal">
) {
  if (jsonBytes(frame.data) > signalDataMaxBytes) {
    return yield* new PayloadTooLarge({ details: { limit: signalDataMaxBytes } })
  }
  const { connectionId, playerId } = connection
  const { entity, payload } = yield* called(connection, frame)
  const delivered = yield* callVoice(entity.Signal({ playerId, connectionId, ...payload }))
  return { delivered }
})

const answer = Effect.fnUntraced(function* (
  connection: PlayerConnection,
  frame: FramePayload<"voiceAnswer">
) {
  const { playerId } = connection
  const { entity, payload } = yield* called(connection, frame)
  return { candidates: yield* callVoice(entity.Answer({ playerId, ...payload })) }
})

const publish = Effect.fnUntraced(function* (
  connection: PlayerConnection,
  frame: FramePayload<"voicePublish">
) {
  const { playerId } = connection
  const { entity, payload } = yield* called(connection, frame)
  return { on: frame.on, canSpeak: yield* callVoice(entity.Publish({ playerId, ...payload })) }
})

const speaking = Effect.fnUntraced(function* (
  connection: PlayerConnection,
  frame: FramePayload<"voiceSpeaking">
) {
  const { playerId } = connection
  const { entity, payload } = yield* called(connection, frame)
  yield* callVoice(entity.Speaking({ playerId, ...payload }))
  return {}
})

/**
 * Runs a frame for a member of the channel within its rate limit, after earlier frames to that channel.
 */
const inOrder = <A>(
  connection: PlayerConnection,
  channel: string,
  now: number,
  effect: (
    membership: ChannelMembership<ChannelHandle>
  ) => Effect.Effect<A, CodedError, VoiceServices>,
  cost = 1
): Effect.Effect<A, CodedError, VoiceServices> =>
  connection.channels.exclusively(
    channel,
    Effect.flatMap(membershipFor(connection, channel, now, cost), effect)
  )

/** The handlers of a player's frames for voice calls. */
export const voiceFrames = (
  services: Context.Context<VoiceServices>,
  now: () => number
): Pick<FrameHandlers, VoiceFrameType> => {
  const effectful = replyWith(services)
  return {
    voiceJoin: effectful("voiceJoin", (connection: PlayerConnection, frame) =>
      inOrder(
        connection,
        frame.channel,
        now(),
        (membership) => joinCall(connection, membership, frame),
        joinFrames
      )
    ),
    voiceLeave: effectful("voiceLeave", (connection: PlayerConnection, { channel }) =>
      inOrder(connection, channel, now(), (membership) =>
        leaveCall(connection, membership, channel)
      )
    ),
    voiceSignal: effectful("voiceSignal", (connection: PlayerConnection, frame) =>
      inOrder(connection, frame.channel, now(), () => signal(connection, frame))
    ),
    voiceAnswer: effectful("voiceAnswer", (connection: PlayerConnection, frame) =>
      inOrder(connection, frame.channel, now(), () => answer(connection, frame))
    ),
    voicePublish: effectful("voicePublish", (connection: PlayerConnection, frame) =>
      inOrder(connection, frame.channel, now(), () => publish(connection, frame))
    ),
    voiceSpeaking: effectful("voiceSpeaking", (connection: PlayerConnection, frame) =>
      inOrder(connection, frame.channel, now(), () => speaking(connection, frame))
    )
  }
}
