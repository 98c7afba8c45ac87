/** The frame `iceServers`: the STUN and TURN servers for a player's peer connections in its room. */
import { Effect } from "effect"
import { NotInRoom } from "#rpc/errors/codes"
import type { PlayerConnection } from "#server/links/player-connection"
import { requestOfRoom } from "../rooms/service.ts"
import { TurnServers } from "./turn-servers.ts"

export const iceServersOf = Effect.fnUntraced(function* (connection: PlayerConnection) {
  const turnServers = yield* TurnServers
  const { environmentId, playerId, room } = connection
  if (room === undefined) return yield* new NotInRoom()
  const { iceTransportPolicy } = yield* requestOfRoom(room, { t: "iceTransport", playerId })
  return yield* turnServers.serversFor(
    `${environmentId}.${playerId}`,
    iceTransportPolicy === "all" ? "all" : "relay"
  )
})
