/** The handlers of all player frames, the same for WebSockets and native RPC. */
import { Clock, Context, Effect, Layer } from "effect"
import { replyWith } from "#server/links/frame-effects"
import type { FrameHandlers } from "#server/links/frame-handler"
import { channelFrames, type ChannelServices } from "#server/features/channels/frames"
import { matchmakingFrames, type MatchmakingServices } from "#server/features/matchmaking/frames"
import { peerFrames } from "#server/features/peers/frames"
import type { TurnServers } from "#server/features/peers/turn-servers"
import { authorityFrames } from "#server/features/rooms/authority-frames"
import { roomFrames, type RoomServices } from "#server/features/rooms/frames"
import { voiceFrames, type VoiceServices } from "#server/features/voice/frames"

/** The services that the effects of frames need. */
type FrameServices =
  | ChannelServices
  | MatchmakingServices
  | RoomServices
  | TurnServers
  | VoiceServices

export class Frames extends Context.Service<Frames, FrameHandlers>()(
  "server/gateway/frame-handlers/Frames"
) {
  static readonly layer = Layer.effect(
    Frames,
    Effect.gen(function* () {
      const services = yield* Effect.context<FrameServices>()
      const clock = yield* Clock.Clock
      const now = () => clock.currentTimeMillisUnsafe()
      return Frames.of({
        ...roomFrames(services),
        ...authorityFrames(services),
        ...matchmakingFrames(services),
        ...peerFrames(services),
        ...channelFrames(services, now),
        ...voiceFrames(services, now),
        ping: replyWith(services)("ping", () =>
          Effect.map(Clock.currentTimeMillis, (at) => ({ at }))
        )
      })
    })
  )
}
