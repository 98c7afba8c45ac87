/**
 * Locks on files, between processes: exclusive ones, and shared ones that count who is alive.
 *
 * They are the file locks of SQLite, which the operating system releases when the holder dies. So
 * there are no stale locks to detect, and no reused process ids to misjudge. The file stays empty,
 * and nothing removes it.
 */
import { DatabaseSync } from "node:sqlite"
import { Effect, Predicate, Schedule } from "effect"
import { EmbeddedPostgresError } from "./binaries.ts"
import { beginExclusive } from "./lock-files.ts"

/** Result code of SQLite when another connection holds the lock. */
const SQLITE_BUSY = 5

const isBusy = (cause: unknown) =>
  Predicate.hasProperty(cause, "errcode") && cause.errcode === SQLITE_BUSY

/** Timeout for another process that creates, starts or stops Postgres. */
const lockTimeout = "2 minutes"

const open = (file: string) =>
  Effect.acquireRelease(
    Effect.try({
      try: () => new DatabaseSync(file, { timeout: 0 }),
      catch: (cause) => lockError(file, cause)
    }),
    (opened) => Effect.sync(() => opened.close())
  )

const retryBusy = { while: isBusy, schedule: Schedule.spaced("25 millis") }

/**
 * Joins the users of a file until the scope closes. Returns an effect that leaves early and answers whether
 * nobody else is left; nobody may join meanwhile.
 */
export const joinUsers = Effect.fnUntraced(function* (file: string) {
  const database = yield* open(file)
  const share = () => database.exec("begin; select 1 from sqlite_schema")
  yield* Effect.try({ try: share, catch: (cause) => cause }).pipe(
    // The statement after `begin` took no lock, so the transaction ends before the next attempt.
    Effect.tapError(() => Effect.sync(() => database.isTransaction && database.exec("rollback"))),
    Effect.retry(retryBusy),
    Effect.mapError((cause) => lockError(file, cause))
  )
  const leave = Effect.try({
    try: () => {
      database.exec(`rollback; ${beginExclusive}; rollback`)
      return true
    },
    catch: (cause) => cause
  })
  return Effect.catchIf(leave, isBusy, () => Effect.succeed(false)).pipe(
    Effect.mapError((cause) => lockError(file, cause))
  )
})

/** Opens the lock of a file; returns a function that runs an effect under it. The wait is interruptible. */
export const openLock = Effect.fnUntraced(function* (file: string) {
  const database = yield* open(file)
  const acquire = Effect.try({
    try: () => database.exec(beginExclusive),
    catch: (cause) => cause
  }).pipe(
    Effect.retry(retryBusy),
    Effect.mapError((cause) => lockError(file, cause)),
    Effect.timeoutOrElse({
      duration: lockTimeout,
      orElse: () =>
        Effect.fail(
          new EmbeddedPostgresError({
            message:
              `Failed to lock ${file}: another process has held it for ${lockTimeout} to start or ` +
              "stop Postgres. Stop that process, or set DATABASE_URL."
          })
        )
    })
  )
  const release = Effect.sync(() => database.exec("rollback"))
  return <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(restore(acquire), () => Effect.ensuring(restore(effect), release))
    )
})

const lockError = (file: string, cause: unknown) =>
  new EmbeddedPostgresError({
    message:
      `Failed to lock ${file}: ${String(cause)}. Make the data directory writable for this user, ` +
      "choose another with SVC_DATA_DIR, or set DATABASE_URL.",
    cause
  })
