/**
 * Frames of channels, for players and for anonymous connections. Anonymous connections can only listen.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SecureRandom } from "effect/crypto"
import { channelLimits } from "#rpc/channels/limits"
import {
  NotInChannel,
  OwnerOnly,
  PlayerRequired,
  RateLimited,
  SendForbidden
} from "#rpc/errors/codes"
import type { ChannelRepository } from "#sql/channels"
import type { Throttles } from "#server/platform/throttles"
import type { ReplyCallback } from "#server/links/entity-link"
import { replyWith } from "#server/links/frame-effects"
import { type FrameHandlers, frameTable, oversized, refuse } from "#server/links/frame-handler"
import type { Hub } from "#server/links/hub"
import type { Listener } from "#server/links/listener"
import type { PlayerConnection } from "#server/links/player-connection"
import type { Configs } from "../config/service.ts"
import { createChannel, joinChannel, leaveChannel } from "./service.ts"

/** The services that the frames of channels need. */
export type ChannelServices =
  | Hub
  | ChannelRepository
  | Configs
  | SecureRandom.SecureRandom
  | Throttles

type ChannelFrameType =
  | "channelJoin"
  | "channelCreate"
  | "channelLeave"
  | "channelSend"
  | "channelModerate"

const send =
  (now: () => number): FrameHandlers["channelSend"] =>
  (connection, { channel, ...message }, onReply, frameBytes) => {
    const membership = connection.channels.get(channel)
    if (membership === undefined) return refuse(connection, onReply, new NotInChannel())
    const error = oversized(frameBytes, message.data, channelLimits.dataMaxBytes)
    if (error !== undefined) return refuse(connection, onReply, error)
    const { bucket, link } = membership
    if (!bucket.take(now())) {
      const { retryAfterSeconds } = bucket
      return refuse(connection, onReply, new RateLimited({ details: { retryAfterSeconds } }))
    }
    const { playerId } = connection
    link.send(
      { t: "send", playerId, ...message },
      onReply === undefined
        ? undefined
        : (result) => onReply(result.ok ? { ok: true, data: {} } : result)
    )
  }

const moderate: FrameHandlers["channelModerate"] = (connection, frame, onReply) => {
  const { channel, playerId: target, ...action } = frame
  const membership = connection.channels.get(channel)
  if (membership === undefined) return refuse(connection, onReply, new OwnerOnly())
  const { playerId } = connection
  membership.link.send({ t: "moderate", playerId, target, ...action }, (result) => {
    if (result.ok) onReply?.({ ok: true, data: {} })
    else refuse(connection, onReply, result.error)
  })
}

/** The handlers of a player's frames for channels. */
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

const requirePlayer = (
  listener: Listener,
  _: unknown,
  onReply: ReplyCallback<never> | undefined
): void => refuse(listener, onReply, new PlayerRequired())

/** The handlers of an anonymous connection's frames. */
export class ListenerFrames extends Context.Service<ListenerFrames, FrameHandlers<Listener>>()(
  "server/features/channels/frames/ListenerFrames"
) {
  static readonly layer = Layer.effect(
    ListenerFrames,
    Effect.gen(function* () {
      const effectful = replyWith(yield* Effect.context<ChannelServices>())
      return ListenerFrames.of({
        ...frameTable<FrameHandlers<Listener>>(() => requirePlayer),
        channelJoin: effectful<"channelJoin", Listener>("channelJoin", joinChannel),
        channelLeave: effectful<"channelLeave", Listener>("channelLeave", leaveChannel),
        channelSend: (listener, { channel }, onReply) => {
          const isIn = listener.channels.has(channel)
          refuse(listener, onReply, isIn ? new SendForbidden() : new NotInChannel())
        },
        ping: effectful("ping", () => Effect.map(Clock.currentTimeMillis, (at) => ({ at })))
      })
    })
  )
}
