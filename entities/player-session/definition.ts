/** The bucket of player sessions, as the registry of entities lists it. */
import { entity } from "../definition.ts"
import { LocalSessions, PlayerSessionsLive } from "./entity.ts"

export const playerSessions = entity({
  word: "session",
  local: LocalSessions.layer,
  behaviour: PlayerSessionsLive,
  registry: LocalSessions,
  counts: [
    { metric: ["svc_player_sessions", "Sessions of players on this node."], of: ({ size }) => size }
  ]
})
