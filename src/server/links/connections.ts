/**
 * Registry of the open connections of this node's players, by id, player and environment. A change
 * of one player or one environment never looks at the connections of the others.
 */
import { Multimap } from "#entities/multimap"
import type { PlayerConnection } from "./player-connection.ts"

export class Connections {
  readonly #byId = new Map<string, PlayerConnection>()
  readonly #byPlayer = new Multimap<string, PlayerConnection>()
  readonly #byEnvironment = new Multimap<string, PlayerConnection>()

  get size(): number {
    return this.#byId.size
  }

  /** Copy of all connections. */
  get all(): ReadonlyArray<PlayerConnection> {
    return Array.from(this.#byId.values())
  }

  get(connectionId: string): PlayerConnection | undefined {
    return this.#byId.get(connectionId)
  }

  add(connection: PlayerConnection): void {
    this.#byId.set(connection.connectionId, connection)
    this.#byPlayer.add(connection.playerId, connection)
    this.#byEnvironment.add(connection.environmentId, connection)
  }

  delete(connection: PlayerConnection): void {
    this.#byId.delete(connection.connectionId)
    this.#byPlayer.delete(connection.playerId, connection)
    this.#byEnvironment.delete(connection.environmentId, connection)
  }

  /** The connections of a player. */
  ofPlayer(environmentId: string, playerId: string): ReadonlyArray<PlayerConnection> {
    return this.#byPlayer
      .get(playerId)
      .filter((connection) => connection.environmentId === environmentId)
  }

  inEnvironment(environmentId: string): ReadonlyArray<PlayerConnection> {
    return this.#byEnvironment.get(environmentId)
  }
}
