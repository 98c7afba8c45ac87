/** Files of the data directory that processes lock. */
export const lockFiles = {
  /** Held exclusively by a process that creates, starts or stops Postgres. */
  start: "postgres.lock",
  /** Shared by all services that use Postgres. */
  users: "postgres.users",
  /** Held exclusively by the watcher. */
  watcher: "postgres.watcher"
} as const

/** Takes an exclusive lock. A journal on disk would come and go, under a copy of the directory. */
export const beginExclusive = "pragma journal_mode = memory; begin exclusive"
