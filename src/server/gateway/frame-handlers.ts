/** The handlers of all player frames, the same for WebSockets and native RPC. */
import { Clock, Context, Effect, Layer } from "effect"
import { NotInRoom } from "#rpc/errors/codes"
import { replyWith } from "#server/links/frame-effects"
import type { FrameHandlers } from "#server/links/frames"
import type { PlayerConnection } from "#server/links/player-connection"
import { channelFrames, type ChannelServices } from "#server/features/channels/frames"
import { cancelMatch, quickMatch } from "#server/features/matchmaking/frames"
import { iceServersOf } from "#server/features/peers/frames"
import type { TurnServers } from "#server/features/peers/turn-servers"
import { roomFrames, type RoomServices } from "#server/features/rooms/frames"
import { leaveRoom } from "#server/features/rooms/service"
import { voiceFrames, type VoiceServices } from "#server/features/voice/frames"

/** The services that the effects of frames need. */
type FrameServices = ChannelServices | RoomServices | TurnServers | VoiceServices

/** Leaves the room, or the queue. */
const leave = Effect.fnUntraced(function* (connection: PlayerConnection) {
  if (connection.room !== undefined) return yield* leaveRoom(connection, connection.room)
  if (connection.ticket === undefined) return yield* new NotInRoom()
  const { cancelled } = yield* cancelMatch(connection)
  if (!cancelled) return yield* new NotInRoom()
  return {}
})

export class Frames extends Context.Service<Frames, FrameHandlers>()(
  "server/gateway/frame-handlers/Frames"
) {
  static readonly layer = Layer.effect(
    Frames,
    Effect.gen(function* () {
      const services = yield* Effect.context<FrameServices>()
      const clock = yield* Clock.Clock
      const now = () => clock.currentTimeMillisUnsafe()
      const effectful = replyWith(services)
      return Frames.of({
        ...roomFrames(services),
        ...channelFrames(services, now),
        ...voiceFrames(services, now),
        leave: effectful("leave", (connection: PlayerConnection) =>
          connection.inOrder(leave(connection))
        ),
        quickMatch: effectful("quickMatch", quickMatch),
        cancelMatch: effectful("cancelMatch", (connection: PlayerConnection) =>
          connection.inOrder(cancelMatch(connection))
        ),
        iceServers: effectful("iceServers", iceServersOf),
        ping: effectful("ping", () => Effect.map(Clock.currentTimeMillis, (at) => ({ at })))
      })
    })
  )
}
