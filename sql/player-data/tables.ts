/**
 * Every table that holds the id of a player, what an export shows of it, and how a deletion empties it.
 * A test compares this with the database: a table that is missing here fails it.
 */

/** Where a player's id stands, and what becomes of it. */
export interface PlayerTable {
  readonly table: string
  /** The part of the export that shows it; null where there is nothing that is not shown elsewhere. */
  readonly exportedAs: string | null
  /**
   * `itself`: the row of the player. `cascade`: goes with it by its foreign key. `statement`: goes in
   * the same transaction. `alive`: the entity that owns the row takes the player out, and writes it.
   * `kept`: stays, as the law and the log want it: an id that names nobody any more.
   */
  readonly deletion: "itself" | "cascade" | "statement" | "alive" | "kept"
}

export const playerTables: ReadonlyArray<PlayerTable> = [
  { table: "players", exportedAs: "player", deletion: "itself" },
  { table: "identities", exportedAs: "identities", deletion: "cascade" },
  { table: "single_use_codes", exportedAs: null, deletion: "cascade" },
  { table: "mails", exportedAs: null, deletion: "cascade" },
  { table: "sign_in_steps", exportedAs: null, deletion: "cascade" },
  { table: "sessions", exportedAs: "sessions", deletion: "cascade" },
  { table: "sanctions", exportedAs: "sanctions", deletion: "cascade" },
  { table: "saves", exportedAs: "saves", deletion: "cascade" },
  { table: "save_counts", exportedAs: null, deletion: "cascade" },
  { table: "stats", exportedAs: "stats", deletion: "cascade" },
  { table: "stat_signals", exportedAs: "rejectedStats", deletion: "cascade" },
  { table: "player_days", exportedAs: "days", deletion: "cascade" },
  { table: "idempotency_keys", exportedAs: null, deletion: "statement" },
  { table: "throttles", exportedAs: null, deletion: "statement" },
  { table: "rooms", exportedAs: "rooms", deletion: "alive" },
  { table: "channels", exportedAs: "channels", deletion: "alive" },
  { table: "deleted_players", exportedAs: null, deletion: "kept" },
  { table: "audit", exportedAs: null, deletion: "kept" }
]
