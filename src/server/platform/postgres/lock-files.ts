/** Files of the data directory that processes lock. */
export const lockFiles = {
  /** Held exclusively by a process that creates, starts or stops Postgres. */
  start: "postgres.lock",
  /** Shared by all services that use Postgres. */
  users: "postgres.users",
  /** Held exclusively by the watcher. */
  watcher: "postgres.watcher"
} as const
