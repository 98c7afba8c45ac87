/**
 * The records of the players in a simulated cluster, and the moderators who change them: bans, display
 * names and age bands. Nodes read them through the service's own cache and learn of changes by
 * `Invalidations`.
 */
import { DateTime, Layer } from "effect"
import { SqlClient } from "effect/sql"
import type { AgeBand } from "#rpc/ages"
import { PlayerId, SanctionId } from "#rpc/ids"
import { SanctionRepository } from "#sql/moderation"
import { Blocks } from "#server/features/blocks/service"
import { PlayerStatusCache } from "#server/features/players/status-cache"
import type { Database } from "./database.ts"
import type { Invalidations } from "./invalidations.ts"
import type { Chance } from "./random.ts"
import { environmentId } from "./environment.ts"
import type { Process, Simulator } from "./simulator.ts"

export interface PlayerRecord {
  readonly displayName: string
  readonly declaredAgeBand: AgeBand | null
  readonly isBanned: boolean
  /** Number of bans so far. */
  readonly bans: number
  /** The players whom the player has blocked. */
  readonly blocks: ReadonlyArray<string>
}

const sanctionId = (number: number) => SanctionId.make(`snc_${String(number).padStart(26, "0")}`)

export class PlayerRecords {
  readonly #database: Database
  readonly #invalidations: Invalidations
  readonly #records = new Map<string, PlayerRecord>()
  #names = 0

  constructor(database: Database, invalidations: Invalidations) {
    this.#database = database
    this.#invalidations = invalidations
  }

  of(playerId: string): PlayerRecord {
    return (
      this.#records.get(playerId) ?? {
        displayName: playerId,
        declaredAgeBand: null,
        isBanned: false,
        bans: 0,
        blocks: []
      }
    )
  }

  /** A moderator changes the record of a player, unless the database is away. */
  moderate(simulator: Simulator, chance: Chance, playerId: string): void {
    const kind = chance.integer(0, 5)
    const { bans, declaredAgeBand, isBanned } = this.of(playerId)
    if (kind < 2 && !isBanned) this.#change(simulator, playerId, { isBanned: true, bans: bans + 1 })
    else if (kind < 2) this.pardon(simulator, playerId)
    else if (kind < 4) {
      this.#change(simulator, playerId, { displayName: `player ${(this.#names += 1)}` })
    } else {
      const isChild = declaredAgeBand === "child"
      this.#change(simulator, playerId, { declaredAgeBand: isChild ? null : "child" })
    }
  }

  /** Lifts the ban of a player, if there is one. */
  pardon(simulator: Simulator, playerId: string): void {
    if (this.of(playerId).isBanned) this.#change(simulator, playerId, { isBanned: false })
  }

  #change(simulator: Simulator, playerId: string, change: Partial<PlayerRecord>): void {
    if (!this.#database.commits) return
    this.#records.set(playerId, { ...this.of(playerId), ...change })
    simulator.note(`${playerId.slice(-2)} is changed: ${JSON.stringify(change)}`)
    this.#invalidations.announce({ kind: "player", id: `${environmentId}/${playerId}` })
  }

  /** The status cache of a node. */
  cacheOf(process: Process) {
    const rowOf = (id: string) => {
      const { bans, blocks, declaredAgeBand, displayName, isBanned } = this.of(id)
      return {
        playerId: PlayerId.make(id),
        displayName,
        declaredAgeBand,
        hasBlocks: blocks.length > 0,
        sanctionId: bans === 0 ? null : sanctionId(bans),
        note: null,
        expiresAt: null,
        liftedAt: isBanned ? null : DateTime.makeUnsafe(0)
      }
    }
    const repository = Layer.mock(SanctionRepository)({
      playerStatuses: (_, ids) => this.#database.read(process, () => ids.map(rowOf))
    })
    const blocks = Layer.mock(Blocks)({
      of: (_, id) => this.#database.read(process, () => this.of(id).blocks)
    })
    return Layer.merge(PlayerStatusCache.layer, blocks).pipe(
      Layer.provide([repository, Layer.succeed(SqlClient.SqlClient, this.#database.sql)])
    )
  }
}
