/**
 * Every table that holds the id of a player, what an export shows of it, and how a deletion empties it.
 * A test compares this with the database: a table that is missing here fails it.
 */

/** Where a player's id stands, and what becomes of it. */
export interface PlayerTable {
  readonly table: string
  /** The part of the export that shows it; null where there is nothing that is not shown elsewhere. */
  readonly shown: string | null
  /**
   * `itself`: the row of the player. `cascade`: goes with it by its foreign key. `statement`: goes in
   * the same transaction. `alive`: the entity that owns the row takes the player out, and writes it.
   * `kept`: stays, as the law and the log want it: an id that names nobody any more.
   */
  readonly goes: "itself" | "cascade" | "statement" | "alive" | "kept"
}

export const playerTables: ReadonlyArray<PlayerTable> = [
  { table: "players", shown: "player", goes: "itself" },
  { table: "identities", shown: "identities", goes: "cascade" },
  { table: "single_use_codes", shown: null, goes: "cascade" },
  { table: "mails", shown: null, goes: "cascade" },
  { table: "sign_in_steps", shown: null, goes: "cascade" },
  { table: "sessions", shown: "sessions", goes: "cascade" },
  { table: "sanctions", shown: "sanctions", goes: "cascade" },
  { table: "saves", shown: "saves", goes: "cascade" },
  { table: "save_counts", shown: null, goes: "cascade" },
  { table: "stats", shown: "stats", goes: "cascade" },
  { table: "stat_signals", shown: "rejectedStats", goes: "cascade" },
  { table: "player_days", shown: "days", goes: "cascade" },
  { table: "idempotency_keys", shown: null, goes: "statement" },
  { table: "throttles", shown: null, goes: "statement" },
  { table: "rooms", shown: "rooms", goes: "alive" },
  { table: "channels", shown: "channels", goes: "alive" },
  { table: "deleted_players", shown: null, goes: "kept" },
  { table: "audit", shown: null, goes: "kept" }
]
