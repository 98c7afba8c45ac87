/** The environment of simulated players and its config. */
import { EnvironmentId } from "#rpc/ids"

export const environmentId = EnvironmentId.make(`env_${"0".repeat(26)}`)

/**
 * One mode starts when full, one with the players present after a timeout, one with a single player, and in
 * one the players connect to each other. The rooms of the last one keep seats for as long as by default.
 */
export const document = {
  features: { multiplayer: true, realtimeChannels: true, voice: true },
  multiplayer: {
    modes: [
      {
        key: "duel",
        minPlayers: 2,
        maxPlayers: 2,
        fillTimeoutSeconds: 0,
        reconnectSeconds: 6,
        authority: { host: ["kick", "ban", "transfer"], matchedHost: ["kick", "mute"] }
      },
      {
        key: "party",
        minPlayers: 3,
        maxPlayers: 4,
        fillTimeoutSeconds: 4,
        reconnectSeconds: 6,
        authority: {
          host: ["kick", "ban", "mute", "team", "transfer"],
          matchedHost: ["kick", "mute", "transfer"],
          votes: [{ op: "kick", share: 0.5, minVoters: 2, seconds: 10, cooldownSeconds: 5 }]
        },
        teams: [
          { key: "red", max: 2 },
          { key: "blue", max: 4 }
        ],
        assign: "free"
      },
      { key: "drop_in", minPlayers: 1, maxPlayers: 3, fillTimeoutSeconds: 4, reconnectSeconds: 6 },
      {
        key: "mesh",
        minPlayers: 2,
        maxPlayers: 3,
        fillTimeoutSeconds: 2,
        reconnectSeconds: 6,
        transport: "p2p",
        p2p: { maxPlayers: 3, relayOnly: false }
      },
      { key: "club", minPlayers: 2, maxPlayers: 8, reconnectSeconds: 30 }
    ]
  }
}
