/**
 * Voice calls for frames: permissions of a connection, and calls to the entity. Every failure to reach
 * the entity is `voice_unavailable`, also at a runner of a release without voice.
 */
import { Context, Effect, Layer, Schedule } from "effect"
import {
  type CodedError,
  NotInChannel,
  RateLimited,
  VoiceSuspended,
  VoiceUnavailable
} from "#rpc/errors/codes"
import { channelId } from "#entities/channel/protocol"
import { voiceClosed } from "#entities/voice-session/closed-event"
import { epochOf } from "#entities/voice-session/model"
import { VoiceSession } from "#entities/voice-session/protocol"
import type { ChannelMembership } from "#server/links/channel-memberships"
import { callEntity } from "#server/links/entity-call"
import type { FramePayload } from "#server/links/frame-handler"
import type { PlayerConnection } from "#server/links/player-connection"
import type { ChannelHandle } from "#server/links/subscriber"
import type { VoiceMembership } from "#server/links/voice-membership"
import { Frame } from "#server/platform/socket-outbox"
import { Configs, requireFeature } from "../config/service.ts"
import { TurnServers } from "../peers/turn-servers.ts"

export const credentialSeconds = 600

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

/** Calls a voice session; fails with `voice_unavailable` if the call does not reach it. */
export const callVoice = <A, R>(
  call: Effect.Effect<A, CodedError, R>
): Effect.Effect<A, CodedError, R> =>
  Effect.mapError(callEntity(call), (error) =>
    error._tag === "unavailable" ? new VoiceUnavailable() : error
  )

/** Returns a connection's membership of a channel, if its rate limit admits this frame. */
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

/** Fails if the environment has no voice, or if the operator has suspended it. */
const checkEnvironment = Effect.fnUntraced(function* ({ environmentId }: PlayerConnection) {
  yield* requireFeature(environmentId, "voice")
  const configs = yield* Configs
  if ((yield* configs.current(environmentId)).voiceSuspended) return yield* new VoiceSuspended()
})

const noRelay = new VoiceUnavailable({
  message:
    "This call must be relayed, and no relay (TURN) server is configured: set SVC_TURN_URLS and " +
    "SVC_TURN_SECRET."
})

/**
 * Returns the ICE servers of a player in a call. The media server itself never shows a player's
 * address.
 */
const iceServers = Effect.fnUntraced(function* (
  { environmentId, playerId }: PlayerConnection,
  { mode, relayOnly }: { readonly mode: "p2p" | "sfu"; readonly relayOnly: boolean }
) {
  const turnServers = yield* TurnServers
  const policy = mode === "p2p" && relayOnly ? "relay" : "all"
  return yield* Effect.mapError(
    turnServers.serversFor(`${environmentId}.${playerId}`, policy, credentialSeconds),
    () => noRelay
  )
})

/**
 * Retries of a join. On a busy machine a media process takes longer to start than one call may take.
 */
const joinRetries = {
  times: 2,
  schedule: Schedule.spaced(250),
  while: ({ _tag }: CodedError) => _tag === "voice_unavailable"
}

/**
 * Ends a session whose addresses the other members see. The client joins again at once, then through
 * a relay. Runs between the frames of the connection to the channel.
 */
const makeEndDirectCall = (
  { channels, environmentId, playerId, sink }: PlayerConnection,
  voice: VoiceMembership,
  { channel, session }: { readonly channel: string; readonly session: string },
  leave: Effect.Effect<void, CodedError>
): Effect.Effect<void> => {
  const end = Effect.gen(function* () {
    if (!voice.isIn(session)) return
    yield* Effect.catch(Effect.retry(leave, joinRetries), (error) =>
      // The next join replaces the session.
      Effect.logWarning("Failed to remove a player from a direct voice call", error).pipe(
        Effect.annotateLogs({ environmentId, playerId, channel })
      )
    )
    if (!voice.isIn(session)) return
    voice.end()
    sink.push(Frame.of(voiceClosed(channel, "unavailable", 0)))
  })
  return channels.exclusively(channel, end)
}

/** Joins the call. Leaves it again if the outcome is unknown, or if the call has ended meanwhile. */
export const joinCall = Effect.fnUntraced(function* (
  connection: PlayerConnection,
  { link, voice }: ChannelMembership<ChannelHandle>,
  { channel, session }: FramePayload<"voiceJoin">
) {
  const sessions = yield* VoiceSessions
  yield* checkEnvironment(connection)
  const { connectionId, environmentId, playerId, relayOnly } = connection
  const entity = sessions.of(environmentId, channel)
  const request = { playerId, connectionId, relayOnly }
  const leave = callVoice(entity.Leave({ playerId, connectionId }))
  const asked = voice.ask()
  return yield* Effect.gen(function* () {
    const join = callVoice(entity.Join(session === undefined ? request : { ...request, session }))
    const joined = yield* Effect.retry(join, joinRetries)
    yield* checkEnvironment(connection)
    const servers = yield* iceServers(connection, joined)
    const isOver = voice.hasEndedSince(asked) || epochOf(joined.session) < link.epoch
    const isDirect = joined.mode === "p2p" && !joined.relayOnly
    // The player may have become a child meanwhile.
    if (isOver || (isDirect && connection.relayOnly)) return yield* new VoiceUnavailable()
    const call = { channel, session: joined.session }
    voice.begin(
      joined.session,
      isDirect ? makeEndDirectCall(connection, voice, call, leave) : undefined
    )
    return { ...joined, ...servers }
  }).pipe(Effect.tapError(() => Effect.ignore(leave)))
})

export const leaveCall = Effect.fnUntraced(function* (
  { connectionId, environmentId, playerId }: PlayerConnection,
  { voice }: ChannelMembership<ChannelHandle>,
  channel: string
) {
  const sessions = yield* VoiceSessions
  voice.leave()
  yield* callVoice(sessions.of(environmentId, channel).Leave({ playerId, connectionId }))
  return {}
})

/**
 * Removes a connection from its calls at once, without a reconnect grace, when its credentials have
 * ended. Call it before the connection closes, and run the effect afterwards, so that no late join
 * follows.
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
