/** Applies a player's age band, and the environment's audience, to an open connection. */
import { type AgeBand, ageProfileOf } from "#rpc/ages"
import type { EnvironmentConfig } from "#rpc/config-document/document"
import type { Hub } from "#server/links/hub"
import type { PlayerConnection } from "#server/links/player-connection"

/**
 * Without open chat, the player leaves the channels that players have created. Without direct
 * connections, peers no longer learn the player's address: the player joins its direct calls again, by a
 * relay.
 */
export const applyAgeBand = (
  hub: Pick<Hub["Service"], "rooms">,
  connection: PlayerConnection,
  audience: EnvironmentConfig["audience"],
  declaredAgeBand: AgeBand | null
): void => {
  const { capabilities } = ageProfileOf(audience, declaredAgeBand)
  const { openChat } = capabilities
  const relayOnly = !capabilities.directConnections
  const before = connection.restrict({ declaredAgeBand, relayOnly, openChat })
  const { environmentId, playerId, reservations } = connection
  if (before.openChat && !openChat) {
    for (const link of connection.channels.links) link.send({ t: "restrict", playerId })
  }
  if (!before.relayOnly && relayOnly) connection.start(connection.channels.endDirectCalls)
  if (before.relayOnly === relayOnly || reservations.current.kind !== "seat") return
  // Without a link the player has not entered yet: entering will send the new value.
  const link = hub.rooms.get(environmentId, reservations.current.roomId)
  link?.send({ t: "relay", playerId, relayOnly }, () => link.closeIfIdle())
}
