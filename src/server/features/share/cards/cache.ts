/**
 * Drawn cards on disk, by a hash of everything that they show. The oldest go when the folder grows beyond
 * its bound. Without a disk that can be written, cards are drawn each time.
 */
import { DateTime, Effect, FileSystem, Option, Path } from "effect"
import { shareCards as bounds } from "#rpc/limits"
import { sweepHourly } from "#server/platform/database"
import { Settings } from "#server/platform/settings/settings"

const nameForm = /^[0-9a-f]{64}\.png$/

/** Sizes of files by name, the oldest first, and their sum. */
class FileSizes {
  readonly #sizes = new Map<string, number>()
  #bytes = 0

  add(name: string, size: number): void {
    this.#bytes += size - (this.#sizes.get(name) ?? 0)
    this.#sizes.delete(name)
    this.#sizes.set(name, size)
  }

  delete(name: string): void {
    this.#bytes -= this.#sizes.get(name) ?? 0
    this.#sizes.delete(name)
  }

  /** Forgets the oldest files until the rest fits into the bound; returns their names. */
  evict(maxBytes: number): ReadonlyArray<string> {
    const evicted: Array<string> = []
    for (const [name, size] of this.#sizes) {
      if (this.#bytes <= maxBytes) break
      this.#sizes.delete(name)
      this.#bytes -= size
      evicted.push(name)
    }
    return evicted
  }
}

/** Reads which cards are in the folder, the oldest first. */
const scan = Effect.fnUntraced(function* (folder: string, sizes: FileSizes) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  yield* fs.makeDirectory(folder, { recursive: true })
  const names = (yield* fs.readDirectory(folder)).filter((name) => nameForm.test(name))
  const found = yield* Effect.forEach(
    names,
    (name) => Effect.map(fs.stat(path.join(folder, name)), (info) => ({ name, ...info })),
    { concurrency: 16 }
  )
  const timeOf = ({ mtime }: (typeof found)[number]) =>
    Option.match(mtime, { onNone: () => 0, onSome: (time) => time.getTime() })
  for (const { name, size } of found.toSorted((a, b) => timeOf(a) - timeOf(b))) {
    sizes.add(name, Number(size))
  }
})

/** Removes cards that were drawn before a time: the name on one may be that of a deleted player. */
const removeOlder = Effect.fnUntraced(function* (
  folder: string,
  sizes: FileSizes,
  before: DateTime.Utc
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const limit = DateTime.toEpochMillis(before)
  for (const name of yield* fs.readDirectory(folder)) {
    const { mtime } = yield* fs.stat(path.join(folder, name))
    if (Option.isNone(mtime) || mtime.value.getTime() >= limit) continue
    yield* fs.remove(path.join(folder, name))
    sizes.delete(name)
  }
})

/** Opens the folder of cards in the data directory. Cards older than a day are removed. */
export const makeCardCache = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const folder = path.join((yield* Settings).dataDir, "cards")
  const sizes = new FileSizes()
  const isWritable = yield* scan(folder, sizes).pipe(
    Effect.as(true),
    Effect.catch((error) =>
      Effect.as(Effect.logWarning("Cards are not cached on disk", error), false)
    )
  )
  const context = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
  yield* sweepHourly("Cards on disk", (now) =>
    removeOlder(folder, sizes, DateTime.subtract(now, { seconds: bounds.maxAgeSeconds })).pipe(
      Effect.provideContext(context),
      // Another process that shares the folder may have removed a file first.
      Effect.ignore
    )
  )
  return {
    /** A drawn card; another process that shares the folder may have drawn it. */
    read: (key: string) =>
      Effect.tap(Effect.option(fs.readFile(path.join(folder, `${key}.png`))), (found) =>
        Effect.sync(() => {
          if (Option.isSome(found)) sizes.add(`${key}.png`, found.value.byteLength)
        })
      ),
    /** Keeps a card. The file appears whole or not at all. */
    write: Effect.fnUntraced(function* (key: string, png: Uint8Array) {
      if (!isWritable) return
      const name = `${key}.png`
      const written = Effect.gen(function* () {
        const temporary = yield* fs.makeTempFile({ directory: folder })
        yield* fs.writeFile(temporary, png)
        yield* fs.rename(temporary, path.join(folder, name))
        sizes.add(name, png.byteLength)
        for (const old of sizes.evict(bounds.cacheMaxBytes)) {
          yield* Effect.ignore(fs.remove(path.join(folder, old)))
        }
      })
      yield* Effect.catch(written, (error) =>
        Effect.logWarning("Failed to cache a card on disk", error)
      )
    })
  }
})
