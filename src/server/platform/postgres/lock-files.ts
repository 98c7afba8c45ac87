/** Files of the data directory that processes lock, and what programs agree on about them. */
export const lockFiles = {
  /** Lock file that a process holds exclusively while it creates, starts or stops Postgres. */
  start: "postgres.lock",
  /** Shared by all services that use Postgres. */
  users: "postgres.users",
  /** Lock file that the watcher holds exclusively. */
  watcher: "postgres.watcher"
} as const

/**
 * Statement that acquires an exclusive lock. A journal on disk would come and go, under a copy of
 * the directory.
 */
export const beginExclusive = "pragma journal_mode = memory; begin exclusive"

/** Exit code of `stop-unused.ts` when a service uses the server. */
export const usedExitCode = 3

/** Argument of the watcher for a data directory that it removes once no service is left. */
export const temporary = "temporary"
