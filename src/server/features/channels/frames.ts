/**
 * Channels from a gateway's side (spec section 4.5, decisions 3.9): what each frame of a player does,
 * and of an anonymous listener. The gateway keeps a connection within its eight channels and its pace;
 * deciding is the channel's.
 */
import { Clock, Context, Effect, Layer, Schema, Semaphore } from "effect"
import { SecureRandom } from "effect/crypto"
import { ChannelName } from "#rpc/channels"
import { featureTable } from "#rpc/config-document/features"
import {
  ChannelForbidden,
  ChannelNotFound,
  type CodedError,
  FeatureDisabled,
  NotInChannel,
  OwnerOnly,
  PlayerRequired,
  RateLimited,
  SendForbidden,
  TooManyChannels
} from "#rpc/errors/codes"
import type { EnvironmentId } from "#rpc/ids"
import { channels as limits, throttles as throttleLimits } from "#rpc/limits"
import { ChannelRepository } from "#sql/channels"
import { voiceOf } from "#entities/channel/options"
import { Throttles } from "#server/platform/throttles"
import { FrameBucket } from "#server/platform/token-bucket"
import { replyWith, oversized, refuse } from "#server/links/answering"
import { ChannelHub } from "#server/links/channel-hub"
import type { ChannelSubscriber } from "#server/links/channel-link"
import type { ReplyCallback } from "#server/links/entity-link"
import type { FrameHandlers, FramePayload } from "#server/links/frames"
import type { Listener } from "#server/links/listener"
import type { PlayerConnection } from "#server/links/player-connection"
import { callEntity } from "#server/links/reservations"
import { Configs } from "../config/service.ts"

/** What the effects behind the frames stand on. */
export type ChannelServices =
  | ChannelHub
  | ChannelRepository
  | Configs
  | SecureRandom.SecureRandom
  | Throttles

const isName = Schema.is(ChannelName)

const withinLimit = ({ channels }: ChannelSubscriber): Effect.Effect<void, TooManyChannels> =>
  channels.size < limits.perConnection
    ? Effect.void
    : Effect.fail(new TooManyChannels({ details: { limit: limits.perConnection } }))

/** What each connection may send, by channel: going out and coming in again does not fill it up. */
const paces = new WeakMap<ChannelSubscriber, Map<string, FrameBucket>>()

const paceOf = (connection: ChannelSubscriber, name: string, now: number): FrameBucket => {
  const own = paces.get(connection) ?? new Map<string, FrameBucket>()
  paces.set(connection, own)
  const bucket =
    own.get(name) ?? new FrameBucket(now, limits.messagesPerSecond, limits.messagesBurst)
  own.delete(name)
  own.set(name, bucket)
  // The channel that was entered longest ago is forgotten.
  const [oldest] = own.keys()
  if (own.size > limits.rateLimitersPerConnection && oldest !== undefined) own.delete(oldest)
  return bucket
}

interface Turn {
  readonly steps: Semaphore.Semaphore
  asked: number
}

/** What each connection has under way, by channel. */
const turns = new WeakMap<ChannelSubscriber, Map<string, Turn>>()

/** Comings and goings of a connection in a channel are done one after the other, as they came. */
const inTurn = <A, E, R>(
  connection: ChannelSubscriber,
  name: string,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const own = turns.get(connection) ?? new Map<string, Turn>()
    const turn = own.get(name) ?? { steps: Semaphore.makeUnsafe(1), asked: 0 }
    turn.asked += 1
    turns.set(connection, own.set(name, turn))
    const done = Effect.sync(() => {
      turn.asked -= 1
      if (turn.asked === 0) own.delete(name)
    })
    return Effect.ensuring(turn.steps.withPermits(1)(effect), done)
  })

/** Comes into a channel that is there, or was a moment ago. */
const enter = Effect.fnUntraced(function* (connection: ChannelSubscriber, name: string) {
  const hub = yield* ChannelHub
  const { channels, environmentId } = connection
  const held = channels.get(name)
  if (held?.line.ended === false) {
    yield* held.line.join(connection)
    return { channel: name }
  }
  if (held === undefined) yield* withinLimit(connection)
  const line = hub.line(environmentId, name)
  const bucket = paceOf(connection, name, yield* Clock.currentTimeMillis)
  const seat = { line, bucket }
  channels.set(name, seat)
  yield* Effect.tapError(line.join(connection), () =>
    Effect.sync(() => {
      if (channels.get(name) === seat) channels.delete(name)
    })
  )
  return { channel: name }
})

const joinKnown = Effect.fnUntraced(function* (connection: ChannelSubscriber, name: string) {
  const hub = yield* ChannelHub
  const rows = yield* ChannelRepository
  const { environmentId } = connection
  if (!isName(name)) return yield* new ChannelNotFound()
  if (!connection.channels.has(name)) yield* withinLimit(connection)
  const known = hub.known(environmentId, name) !== undefined
  if (!known && !(yield* rows.exists(environmentId, name))) return yield* new ChannelNotFound()
  return yield* enter(connection, name)
})

/** Comes into a channel. Only those that are there are woken: a made-up name never costs an entity. */
const joinChannel = (connection: ChannelSubscriber, { channel }: FramePayload<"channelJoin">) =>
  inTurn(connection, channel, joinKnown(connection, channel))

const nameAlphabet = "abcdefghijklmnopqrstuvwxyz0123456789"

const generatedName = Effect.gen(function* () {
  const random = yield* SecureRandom.SecureRandom
  let name = "@"
  for (let i = 0; i < limits.generatedNameCharacters; i++) {
    name += nameAlphabet.charAt(yield* random.intBetween(0, nameAlphabet.length - 1))
  }
  return name
})

/** Voice needs its own feature, whoever sets it. */
export const voiceOffered = Effect.fnUntraced(function* (environmentId: EnvironmentId) {
  const configs = yield* Configs
  const { features } = (yield* configs.current(environmentId)).config
  if (features.voice) return
  const { configPath } = featureTable.voice
  return yield* new FeatureDisabled({ details: { feature: "voice", configPath } })
})

/** Makes a channel and comes into it as its owner. */
const createChannel = Effect.fnUntraced(function* (
  connection: PlayerConnection,
  frame: FramePayload<"channelCreate">
) {
  const hub = yield* ChannelHub
  const throttles = yield* Throttles
  const { environmentId, player, playerId } = connection
  const { join = "anyone", maxMembers = limits.membersDefault, send = "anyone" } = frame
  if (!player.openChat) return yield* new ChannelForbidden()
  if (frame.voice !== undefined) yield* voiceOffered(environmentId)
  const voice = yield* Effect.fromResult(voiceOf(frame.voice ?? null, maxMembers))
  yield* withinLimit(connection)
  yield* throttles.take(throttleLimits.channelCreate, `channel-create:${playerId}`)
  const name = frame.channel ?? (yield* generatedName)
  const create = { ownerId: playerId, join, send, maxMembers, voice }
  const made = callEntity(hub.channel(environmentId, name).Create({ create }))
  return yield* inTurn(connection, name, Effect.andThen(made, enter(connection, name)))
})

const leave = (connection: ChannelSubscriber, channel: string): Effect.Effect<{}, CodedError> =>
  Effect.callback((resume) => {
    const seat = connection.channels.get(channel)
    if (seat === undefined) return resume(Effect.succeed({}))
    connection.channels.delete(channel)
    seat.line.leave(connection, "left", (answer) =>
      resume(answer.ok ? Effect.succeed({}) : Effect.fail(answer.error))
    )
  })

const leaveChannel = (connection: ChannelSubscriber, { channel }: FramePayload<"channelLeave">) =>
  inTurn(connection, channel, leave(connection, channel))

/** The player may only be in server-made channels from now on, or everywhere again. */
export const setOpenChat = (connection: PlayerConnection, openChat: boolean): void => {
  if (connection.player.openChat === openChat) return
  connection.player = { ...connection.player, openChat }
  if (openChat) return
  const { playerId } = connection
  for (const { line } of connection.channels.values()) line.send({ t: "restrict", playerId })
}

type ChannelFrameType =
  | "channelJoin"
  | "channelCreate"
  | "channelLeave"
  | "channelSend"
  | "channelModerate"

/** A message, once it fits and is not too soon. */
const send =
  (now: () => number): FrameHandlers["channelSend"] =>
  (connection, { channel, ...message }, reply) => {
    const seat = connection.channels.get(channel)
    if (seat === undefined) return refuse(connection, reply, new NotInChannel())
    const large = oversized(connection, message.data, limits.dataMaxBytes)
    if (large !== undefined) return refuse(connection, reply, large)
    if (!seat.bucket.take(now())) {
      const { retryAfterSeconds } = seat.bucket
      return refuse(connection, reply, new RateLimited({ details: { retryAfterSeconds } }))
    }
    const { playerId } = connection
    seat.line.send(
      { t: "send", playerId, ...message },
      reply === undefined
        ? undefined
        : (answer) => reply(answer.ok ? { ok: true, data: {} } : answer)
    )
  }

const moderate: FrameHandlers["channelModerate"] = (connection, frame, reply) => {
  const { channel, playerId: target, ...act } = frame
  const seat = connection.channels.get(channel)
  if (seat === undefined) return refuse(connection, reply, new OwnerOnly())
  const { playerId } = connection
  seat.line.send({ t: "moderate", playerId, target, ...act }, (answer) => {
    if (answer.ok) reply?.({ ok: true, data: {} })
    else refuse(connection, reply, answer.error)
  })
}

/** The frames of players. */
export const channelFrames = (
  services: Context.Context<ChannelServices>,
  now: () => number
): Pick<FrameHandlers, ChannelFrameType> => {
  const effectful = replyWith(services)
  return {
    channelJoin: effectful<"channelJoin", PlayerConnection>("channelJoin", joinChannel),
    channelCreate: effectful("channelCreate", createChannel),
    channelLeave: effectful<"channelLeave", PlayerConnection>("channelLeave", leaveChannel),
    channelSend: send(now),
    channelModerate: moderate
  }
}

const playersOnly = (
  listener: Listener,
  _: unknown,
  reply: ReplyCallback<never> | undefined
): void => refuse(listener, reply, new PlayerRequired())

/** The frames of anonymous connections. */
export class ListenerFrames extends Context.Service<ListenerFrames, FrameHandlers<Listener>>()(
  "server/features/channels/frames/ListenerFrames"
) {
  static readonly layer = Layer.effect(
    ListenerFrames,
    Effect.gen(function* () {
      const effectful = replyWith(yield* Effect.context<ChannelServices>())
      return ListenerFrames.of({
        channelJoin: effectful<"channelJoin", Listener>("channelJoin", joinChannel),
        channelLeave: effectful<"channelLeave", Listener>("channelLeave", leaveChannel),
        channelSend: (listener, { channel }, reply) => {
          const isIn = listener.channels.has(channel)
          refuse(listener, reply, isIn ? new SendForbidden() : new NotInChannel())
        },
        ping: effectful("ping", () => Effect.map(Clock.currentTimeMillis, (at) => ({ at }))),
        channelCreate: playersOnly,
        channelModerate: playersOnly,
        create: playersOnly,
        join: playersOnly,
        leave: playersOnly,
        resume: playersOnly,
        send: playersOnly,
        setState: playersOnly,
        setMyState: playersOnly,
        lock: playersOnly,
        signal: playersOnly,
        iceServers: playersOnly,
        quickMatch: playersOnly,
        cancelMatch: playersOnly
      })
    })
  )
}
