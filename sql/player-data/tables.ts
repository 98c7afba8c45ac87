/**
 * Lists every table that holds player ids, with its place in the export and its rule for deletion. A
 * test fails if a table of the database is missing here.
 */

/** One table with player ids. */
export interface PlayerTable {
  readonly table: string
  /** Property of the export; null if the table adds nothing to other properties. */
  readonly exportedAs: string | null
  /**
   * `itself`: the player row. `cascade`: deleted by the foreign key. `statement`: deleted by another
   * statement of the same transaction. `entity`: the entity that owns the row removes the player and
   * saves. `retained`: stays for audits and legal duties; the id no longer identifies anybody.
   */
  readonly deletion: "itself" | "cascade" | "statement" | "entity" | "retained"
}

export const playerTables: ReadonlyArray<PlayerTable> = [
  { table: "players", exportedAs: "player", deletion: "itself" },
  { table: "identities", exportedAs: "identities", deletion: "cascade" },
  { table: "single_use_codes", exportedAs: null, deletion: "cascade" },
  { table: "mails", exportedAs: null, deletion: "cascade" },
  { table: "sign_in_steps", exportedAs: null, deletion: "cascade" },
  { table: "spent_answers", exportedAs: null, deletion: "cascade" },
  { table: "sessions", exportedAs: "sessions", deletion: "cascade" },
  { table: "share_links", exportedAs: "shareLinks", deletion: "cascade" },
  { table: "sanctions", exportedAs: "sanctions", deletion: "cascade" },
  { table: "saves", exportedAs: "saves", deletion: "cascade" },
  { table: "save_counts", exportedAs: null, deletion: "cascade" },
  { table: "stats", exportedAs: "stats", deletion: "cascade" },
  { table: "stat_signals", exportedAs: "rejectedStats", deletion: "cascade" },
  { table: "player_days", exportedAs: "days", deletion: "cascade" },
  { table: "idempotency_keys", exportedAs: null, deletion: "statement" },
  { table: "throttles", exportedAs: null, deletion: "statement" },
  { table: "rate_windows", exportedAs: null, deletion: "statement" },
  { table: "rooms", exportedAs: "rooms", deletion: "entity" },
  { table: "channels", exportedAs: "channels", deletion: "entity" },
  { table: "deleted_players", exportedAs: null, deletion: "retained" },
  { table: "audit", exportedAs: null, deletion: "retained" }
]
