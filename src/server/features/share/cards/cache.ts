/**
 * Drawn cards on disk, keyed by a hash of everything that they show. The least recently used cards go
 * when the folder exceeds its bound. Without a writable disk, the service draws cards each time.
 */
import { readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { DateTime, Effect, Option } from "effect"
import { shareCards } from "#rpc/share/limits"
import { DiskCache } from "#server/platform/blobs/disk-cache"
import { makeTemporaryFiles } from "#server/platform/blobs/folder"
import { attempt } from "#server/platform/blobs/store"
import { sweepHourly } from "#server/platform/database"
import { Settings } from "#server/platform/settings/settings"

/** Opens the folder of cards in the data directory. Removes cards older than a day. */
export const makeCardCache = Effect.gen(function* () {
  const { dataDir } = yield* Settings
  const temporaryFile = yield* makeTemporaryFiles(join(dataDir, "temporary-cards"))
  const opened = yield* attempt("open the cache of cards", () =>
    DiskCache.open(join(dataDir, "cards"), shareCards.cacheMaxBytes)
  ).pipe(
    Effect.tapError((error) =>
      Effect.logWarning(
        "Failed to open the card cache; each card is drawn again when it is requested",
        error
      )
    ),
    Effect.option
  )
  if (Option.isNone(opened)) {
    return { read: () => Effect.succeedNone, write: () => Effect.void }
  }
  const files = opened.value
  const nameOf = (key: string): string => `${key}.png`
  // The name on a card may be that of a deleted player.
  yield* sweepHourly("Cards on disk", (now) =>
    Effect.ignore(
      attempt("remove old cards", () =>
        files.removeOlder(
          DateTime.toEpochMillis(DateTime.subtract(now, { seconds: shareCards.maxAgeSeconds }))
        )
      )
    )
  )
  return {
    /** Reads a drawn card. */
    read: (key: string): Effect.Effect<Option.Option<Uint8Array>> =>
      attempt("read a card", async () => {
        const file = await files.get(nameOf(key))
        return file === undefined ? undefined : await readFile(file)
      }).pipe(Effect.option, Effect.map(Option.flatMap(Option.fromUndefinedOr))),
    /** Stores a card. The file appears whole or not at all. */
    write: (key: string, png: Uint8Array): Effect.Effect<void> =>
      Effect.gen(function* () {
        const temporary = yield* temporaryFile
        yield* attempt("cache a card", () => writeFile(temporary, png))
        yield* attempt("cache a card", () => files.take(nameOf(key), temporary))
      }).pipe(
        Effect.scoped,
        Effect.catch((error) => Effect.logWarning("Failed to cache a card on disk", error))
      )
  }
})
