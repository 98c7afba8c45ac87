/** The environment of simulated players and its config. */
import { Result } from "effect"
import { decodeConfig } from "#rpc/config-document/document"
import { EnvironmentId } from "#rpc/ids"

export const environmentId = EnvironmentId.make(`env_${"0".repeat(26)}`)

/** Two modes: one starts when full, the other starts with the players present after a timeout. */
export const config = Result.getOrThrow(
  decodeConfig({
    features: { multiplayer: true, realtimeChannels: true, voice: true },
    multiplayer: {
      modes: [
        { key: "duel", minPlayers: 2, maxPlayers: 2, fillTimeoutSeconds: 0, reconnectSeconds: 6 },
        { key: "party", minPlayers: 3, maxPlayers: 4, fillTimeoutSeconds: 4, reconnectSeconds: 6 }
      ]
    }
  })
)
