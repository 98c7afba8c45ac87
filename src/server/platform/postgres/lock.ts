/**
 * A lock between processes, held on a file.
 *
 * It is SQLite's own file lock, which the operating system drops the moment its holder dies, by
 * whatever signal. So there is no stale lock to detect, and no process id to mistake for another.
 * The file stays empty and is never removed.
 */
import { DatabaseSync } from "node:sqlite"
import { Effect, Predicate, Schedule } from "effect"
import { EmbeddedPostgresError } from "./binaries.ts"

/** Result code of SQLite when another connection holds the lock. */
const SQLITE_BUSY = 5

const isBusy = (cause: unknown) =>
  Predicate.hasProperty(cause, "errcode") && cause.errcode === SQLITE_BUSY

/** How long to wait for another process that creates, starts or stops Postgres. */
const patience = "2 minutes"

/**
 * Opens the lock at `file` and returns a function that runs an effect while holding it. Waiting
 * for the lock can be interrupted.
 */
export const openLock = Effect.fnUntraced(function* (file: string) {
  const database = yield* Effect.acquireRelease(
    Effect.try({
      try: () => new DatabaseSync(file, { timeout: 0 }),
      catch: (cause) => unusable(file, cause)
    }),
    (opened) => Effect.sync(() => opened.close())
  )
  const take = Effect.try({
    try: () => database.exec("begin exclusive"),
    catch: (cause) => cause
  }).pipe(
    Effect.retry({ while: isBusy, schedule: Schedule.spaced("25 millis") }),
    Effect.mapError((cause) => unusable(file, cause)),
    Effect.timeoutOrElse({
      duration: patience,
      orElse: () =>
        Effect.fail(
          new EmbeddedPostgresError({
            message:
              `Another process has held ${file} for ${patience}, so it is still starting or ` +
              "stopping Postgres. Stop that process, or set DATABASE_URL."
          })
        )
    })
  )
  const drop = Effect.sync(() => database.exec("rollback"))
  return <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(restore(take), () => Effect.ensuring(restore(effect), drop))
    )
})

const unusable = (file: string, cause: unknown) =>
  new EmbeddedPostgresError({
    message:
      `Cannot lock ${file}: ${String(cause)}. Make the data directory writable for this user, ` +
      "choose another with SVC_DATA_DIR, or set DATABASE_URL.",
    cause
  })
