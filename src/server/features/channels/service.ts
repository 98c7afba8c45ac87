/**
 * Channels for frames and HTTP endpoints: joining, creating and leaving from a connection, and calls
 * without a connection. The gateway limits how many channels a connection joins; the channel decides
 * everything else.
 */
import { Clock, Context, Effect, Layer, Schema } from "effect"
import { SecureRandom } from "effect/crypto"
import { ChannelName } from "#rpc/channels/frames"
import { channelLimits } from "#rpc/channels/limits"
import {
  ChannelForbidden,
  ChannelNotFound,
  type CodedError,
  TooManyChannels,
  Unavailable
} from "#rpc/errors/codes"
import { ChannelRepository } from "#sql/channels"
import { Channel, channelId } from "#entities/channel/protocol"
import { voiceOf } from "#entities/channel/options"
import { Throttles } from "#server/platform/throttles"
import { callEntity } from "#server/links/entity-call"
import type { FramePayload } from "#server/links/frame-handler"
import { Hub } from "#server/links/hub"
import type { PlayerConnection } from "#server/links/player-connection"
import type { ChannelSubscriber } from "#server/links/subscriber"
import { requireFeature } from "../config/service.ts"

/** `channelCreate`, for each player. */
const channelCreateThrottle = { burst: 20, seconds: 60 } as const

type Client = ReturnType<Effect.Success<typeof Channel.client>>

/** Calls to the channels of the cluster. */
export class Channels extends Context.Service<
  Channels,
  { readonly of: (environmentId: string, name: string) => Client }
>()("server/features/channels/service/Channels") {
  static readonly layer = Layer.effect(
    Channels,
    Effect.map(Channel.client, (client) =>
      Channels.of({ of: (environmentId, name) => client(channelId(environmentId, name)) })
    )
  )
}

const isName = Schema.is(ChannelName)

const checkLimit = ({ channels }: ChannelSubscriber): Effect.Effect<void, TooManyChannels> =>
  channels.size < channelLimits.perConnection
    ? Effect.void
    : Effect.fail(new TooManyChannels({ details: { limit: channelLimits.perConnection } }))

/** Enters a channel that exists, or existed a moment ago. */
const enter = Effect.fnUntraced(function* (connection: ChannelSubscriber, name: string) {
  const hub = yield* Hub
  const { channels, environmentId } = connection
  const known = channels.get(name)
  if (known?.link.ended === false) {
    yield* known.link.join(connection)
    return { channel: name }
  }
  if (known === undefined) yield* checkLimit(connection)
  const link = hub.channels.open(environmentId, name)
  const membership = channels.add(name, link, yield* Clock.currentTimeMillis)
  yield* Effect.tapError(link.join(connection), () =>
    Effect.sync(() => channels.remove(name, membership))
  )
  return { channel: name }
})

const joinExisting = Effect.fnUntraced(function* (connection: ChannelSubscriber, name: string) {
  const hub = yield* Hub
  const repository = yield* ChannelRepository
  const { channels, environmentId } = connection
  if (!isName(name)) return yield* new ChannelNotFound()
  if (!channels.has(name)) yield* checkLimit(connection)
  const exists =
    hub.channels.get(environmentId, name) !== undefined ||
    (yield* repository.exists(environmentId, name))
  if (!exists) return yield* new ChannelNotFound()
  return yield* enter(connection, name)
})

/** Joins a channel. Checks that it exists, so that an invented name wakes no entity. */
export const joinChannel = (
  connection: ChannelSubscriber,
  { channel }: FramePayload<"channelJoin">
) => connection.channels.exclusively(channel, joinExisting(connection, channel))

const nameAlphabet = "abcdefghijklmnopqrstuvwxyz0123456789"

const generatedName = Effect.gen(function* () {
  const random = yield* SecureRandom.SecureRandom
  let name = "@"
  for (let i = 0; i < channelLimits.generatedNameCharacters; i++) {
    name += nameAlphabet.charAt(yield* random.intBetween(0, nameAlphabet.length - 1))
  }
  return name
})

const isNotFound = ({ _tag }: CodedError): boolean => _tag === "channel_not_found"

/** Creates a channel and enters it as its owner. */
export const createChannel = Effect.fnUntraced(function* (
  connection: PlayerConnection,
  frame: FramePayload<"channelCreate">
) {
  const hub = yield* Hub
  const throttles = yield* Throttles
  const { channels, environmentId, player, playerId } = connection
  const { join = "anyone", maxMembers = channelLimits.membersDefault, send = "anyone" } = frame
  if (!player.openChat) return yield* new ChannelForbidden()
  if (frame.voice !== undefined) yield* requireFeature(environmentId, "voice")
  const voice = yield* Effect.fromResult(voiceOf(frame.voice ?? null, maxMembers))
  yield* checkLimit(connection)
  yield* throttles.take(channelCreateThrottle, `channel-create:${playerId}`)
  const name = frame.channel ?? (yield* generatedName)
  const create = { ownerId: playerId, join, send, maxMembers, voice }
  const created = callEntity(hub.channel(environmentId, name).Create({ create }))
  // The link may just learn that a channel of this name before has ended, or this one is deleted again.
  const entered = enter(connection, name).pipe(
    Effect.retry({ times: 1, while: isNotFound }),
    Effect.catchIf(isNotFound, () => Effect.fail(new Unavailable()))
  )
  return yield* channels.exclusively(name, Effect.andThen(created, entered))
})

const leave = (connection: ChannelSubscriber, name: string): Effect.Effect<{}, CodedError> =>
  Effect.callback((resume) => {
    const { channels } = connection
    const membership = channels.get(name)
    if (membership === undefined) return resume(Effect.succeed({}))
    channels.remove(name, membership)
    membership.link.leave(connection, "left", (result) =>
      resume(result.ok ? Effect.succeed({}) : Effect.fail(result.error))
    )
  })

export const leaveChannel = (
  connection: ChannelSubscriber,
  { channel }: FramePayload<"channelLeave">
) => connection.channels.exclusively(channel, leave(connection, channel))
