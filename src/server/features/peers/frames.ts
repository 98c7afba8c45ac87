/** Frame `iceServers`: the STUN and TURN servers for a player's peer connections in its room. */
import { type Context, Effect } from "effect"
import { NotInRoom } from "#rpc/errors/codes"
import { replyWith } from "#server/links/frame-effects"
import type { FrameHandlers } from "#server/links/frame-handler"
import type { PlayerConnection } from "#server/links/player-connection"
import { requestOfRoom } from "../rooms/service.ts"
import { TurnServers } from "./turn-servers.ts"

const iceServersOf = Effect.fnUntraced(function* (connection: PlayerConnection) {
  const turnServers = yield* TurnServers
  const { environmentId, playerId, room } = connection
  if (room === undefined) return yield* new NotInRoom()
  const { iceTransportPolicy } = yield* requestOfRoom(room, { t: "iceTransport", playerId })
  return yield* turnServers.serversFor(
    `${environmentId}.${playerId}`,
    iceTransportPolicy === "all" ? "all" : "relay"
  )
})

/** Handler of a player's frame for peers; the frames of rooms have `signal`. */
export const peerFrames = (
  services: Context.Context<TurnServers>
): Pick<FrameHandlers, "iceServers"> => ({
  iceServers: replyWith(services)("iceServers", iceServersOf)
})
