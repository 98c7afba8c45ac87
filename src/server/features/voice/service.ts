/**
 * Voice calls as their frames need them: what a connection may do, and calls to the entity. Whatever
 * keeps a call from its entity is `voice_unavailable`, also a runner of a release without voice.
 */
import { Context, Effect, Layer, Schedule } from "effect"
import {
  type CodedError,
  NotInChannel,
  RateLimited,
  VoiceSuspended,
  VoiceUnavailable
} from "#rpc/errors/codes"
import { voice as limits } from "#rpc/limits"
import { channelId } from "#entities/channel/protocol"
import { epochOf } from "#entities/voice-session/model"
import { VoiceSession } from "#entities/voice-session/protocol"
import { type ChannelMembership, endVoice } from "#server/links/channel-memberships"
import { callEntity } from "#server/links/entity-call"
import type { FramePayload } from "#server/links/frames"
import type { PlayerConnection } from "#server/links/player-connection"
import type { ChannelHandle } from "#server/links/subscriber"
import { Frame } from "#server/platform/socket-outbox"
import { checkVoiceFeature } from "../channels/service.ts"
import { Configs } from "../config/service.ts"
import { TurnServers } from "../peers/turn-servers.ts"

type Client = ReturnType<Effect.Success<typeof VoiceSession.client>>

/** Calls to the voice sessions of the cluster. */
export class VoiceSessions extends Context.Service<
  VoiceSessions,
  { readonly of: (environmentId: string, channel: string) => Client }
>()("server/features/voice/service/VoiceSessions") {
  static readonly layer = Layer.effect(
    VoiceSessions,
    Effect.map(VoiceSession.client, (client) =>
      VoiceSessions.of({
        of: (environmentId, channel) => client(channelId(environmentId, channel))
      })
    )
  )
}

/** Calls a voice session; fails as `voice_unavailable` when the call does not reach it. */
export const callVoice = <A, R>(
  call: Effect.Effect<A, CodedError, R>
): Effect.Effect<A, CodedError, R> =>
  Effect.mapError(callEntity(call), (error) =>
    error._tag === "unavailable" ? new VoiceUnavailable() : error
  )

/** A connection's membership of a channel, whose limit has room for this frame. */
export const membershipFor = (
  { channels }: PlayerConnection,
  channel: string,
  now: number,
  cost = 1
): Effect.Effect<ChannelMembership<ChannelHandle>, NotInChannel | RateLimited> =>
  Effect.gen(function* () {
    const membership = channels.get(channel)
    if (membership === undefined) return yield* new NotInChannel()
    const { voiceBucket } = membership
    if (voiceBucket.take(now, cost)) return membership
    const { retryAfterSeconds } = voiceBucket
    return yield* new RateLimited({ details: { retryAfterSeconds } })
  })

/** Fails where the environment has no voice, or the operator has suspended it. */
const checkEnvironment = Effect.fnUntraced(function* ({ environmentId }: PlayerConnection) {
  yield* checkVoiceFeature(environmentId)
  const configs = yield* Configs
  if ((yield* configs.current(environmentId)).voiceSuspended) return yield* new VoiceSuspended()
})

const noRelay = new VoiceUnavailable({
  message:
    "This call must be relayed, and no relay (TURN) server is configured: set SVC_TURN_URLS and " +
    "SVC_TURN_SECRET."
})

/** The ICE servers of a player in a call. The media server itself never shows a player's address. */
const iceServers = Effect.fnUntraced(function* (
  { environmentId, playerId }: PlayerConnection,
  { mode, relayOnly }: { readonly mode: "p2p" | "sfu"; readonly relayOnly: boolean }
) {
  const turnServers = yield* TurnServers
  const policy = mode === "p2p" && relayOnly ? "relay" : "all"
  return yield* Effect.mapError(
    turnServers.serversFor(`${environmentId}.${playerId}`, policy, limits.credentialSeconds),
    () => noRelay
  )
})

/** On a busy machine a media process takes longer to start than one call may take. */
const joinRetries = {
  times: 2,
  schedule: Schedule.spaced(250),
  while: ({ _tag }: CodedError) => _tag === "voice_unavailable"
}

/**
 * Ends a session whose addresses the other members see, and has the client join again at once: then by a
 * relay. Runs between the frames of the connection to the channel.
 */
const makeEndDirectCall = (
  { channels, environmentId, playerId, sink }: PlayerConnection,
  membership: ChannelMembership<ChannelHandle>,
  channel: string,
  leave: Effect.Effect<void, CodedError>
): Effect.Effect<void> => {
  const session = membership.voiceSession
  const isOver = () => membership.voiceSession !== session
  const end = Effect.gen(function* () {
    if (isOver()) return
    yield* Effect.catch(Effect.retry(leave, joinRetries), (error) =>
      // The next join replaces the session.
      Effect.logWarning("Failed to remove a player from a direct voice call", error).pipe(
        Effect.annotateLogs({ environmentId, playerId, channel })
      )
    )
    if (isOver()) return
    endVoice(membership)
    sink.push(Frame.of({ t: "voice_closed", channel, reason: "unavailable", retryAfterMs: 0 }))
  })
  return channels.exclusively(channel, end)
}

/** Joins the call. Where the outcome is unknown, or the call has ended meanwhile, leaves it again. */
export const joinCall = Effect.fnUntraced(function* (
  connection: PlayerConnection,
  membership: ChannelMembership<ChannelHandle>,
  { channel, session }: FramePayload<"voiceJoin">
) {
  const sessions = yield* VoiceSessions
  yield* checkEnvironment(connection)
  const { connectionId, environmentId, playerId, relayOnly } = connection
  const { voiceClosings } = membership
  const entity = sessions.of(environmentId, channel)
  const request = { playerId, connectionId, relayOnly }
  const leave = callVoice(entity.Leave({ playerId, connectionId }))
  membership.askedForVoice = true
  return yield* Effect.gen(function* () {
    const join = callVoice(entity.Join(session === undefined ? request : { ...request, session }))
    const joined = yield* Effect.retry(join, joinRetries)
    yield* checkEnvironment(connection)
    const servers = yield* iceServers(connection, joined)
    const isOver =
      membership.voiceClosings !== voiceClosings || epochOf(joined.session) < membership.link.epoch
    const isDirect = joined.mode === "p2p" && !joined.relayOnly
    // The player may have become a child meanwhile.
    if (isOver || (isDirect && connection.relayOnly)) return yield* new VoiceUnavailable()
    membership.voiceSession = joined.session
    membership.endDirectCall = isDirect
      ? makeEndDirectCall(connection, membership, channel, leave)
      : undefined
    return { ...joined, ...servers }
  }).pipe(Effect.tapError(() => Effect.ignore(leave)))
})

export const leaveCall = Effect.fnUntraced(function* (
  { connectionId, environmentId, playerId }: PlayerConnection,
  membership: ChannelMembership<ChannelHandle>,
  channel: string
) {
  const sessions = yield* VoiceSessions
  membership.voiceSession = undefined
  membership.endDirectCall = undefined
  yield* callVoice(sessions.of(environmentId, channel).Leave({ playerId, connectionId }))
  return {}
})

/**
 * Takes a connection out of its calls at once, when its credentials have ended: it gets no time to come back.
 * Ask before the connection closes, and run the effect afterwards, so that no late join follows.
 */
export const makeLeaveCalls = Effect.map(
  VoiceSessions,
  (sessions) =>
    ({ channels, connectionId, environmentId, playerId }: PlayerConnection): Effect.Effect<void> =>
      Effect.forEach(
        channels.withVoice,
        (channel) =>
          Effect.ignore(
            callVoice(sessions.of(environmentId, channel).Leave({ playerId, connectionId }))
          ),
        { concurrency: "unbounded", discard: true }
      )
)
