/**
 * Applies a player's name, blocks and age band, and the environment's audience, to an open connection.
 */
import { Effect } from "effect"
import { type AgeBand, ageProfileOf } from "#rpc/ages"
import type { EnvironmentConfig } from "#rpc/config-document/document"
import type { Hub } from "#server/links/hub"
import type { PlayerConnection } from "#server/links/player-connection"
import { Blocks } from "#server/features/blocks/service"

/** Sends the room of a connection the player's name and blocks, and how peers may reach the player. */
const updateRoom = (hub: Pick<Hub["Service"], "rooms">, connection: PlayerConnection): void => {
  const { blocks, displayName, environmentId, playerId, relayOnly, reservations } = connection
  if (reservations.current.kind !== "seat") return
  // Without a link the player has not entered yet: entering will send the new values.
  const link = hub.rooms.get(environmentId, reservations.current.roomId)
  link?.send({ t: "relay", playerId, relayOnly, displayName, blocks }, () => link.closeIfIdle())
}

/** Sends rooms and channels the player's name and blocks, where they live. One that was moving has missed them. */
export const sendPlayer = (
  hub: Pick<Hub["Service"], "rooms">,
  connection: PlayerConnection
): void => {
  updateRoom(hub, connection)
  for (const link of connection.channels.links) link.rename(connection)
}

/** Applies whom the player has blocked: sends rooms and channels the list where it has changed. */
export const applyBlocks = (
  hub: Pick<Hub["Service"], "rooms">,
  connection: PlayerConnection
): Effect.Effect<void, never, Blocks> =>
  Effect.gen(function* () {
    const { environmentId, playerId } = connection
    const blocks = yield* Blocks
    const changes = connection.readBlocks()
    if (changes(yield* blocks.of(environmentId, playerId))) sendPlayer(hub, connection)
  })

/**
 * Applies an age band to a connection. Without open chat, the player leaves the channels that
 * players have created. Without direct connections, its direct calls end: the player rejoins them
 * by a relay, so that peers no longer learn its address.
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
  const { playerId } = connection
  if (before.openChat && !openChat) {
    // With a reply it is repeated until the channel has executed it.
    const restrict = { t: "restrict", playerId } as const
    for (const link of connection.channels.links) link.send(restrict, () => undefined)
  }
  if (!before.relayOnly && relayOnly) connection.start(connection.channels.endDirectCalls)
  if (before.relayOnly !== relayOnly) updateRoom(hub, connection)
}
