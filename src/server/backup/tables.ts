/** Writes the tables of a backup into a database: with the migrations of its release, then its rows. */
import { createReadStream } from "node:fs"
import { join } from "node:path"
import { pipeline } from "node:stream"
import { createGunzip } from "node:zlib"
import { Effect, type Redacted, Stream } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import {
  listTables,
  replaceContent,
  type Session,
  tablesAt,
  type TableShape,
  writeRows
} from "#sql/backup"
import { migrateTo, newestMigration, poolLayer } from "#sql/database"
import type { Manifest } from "./manifest.ts"
import { BackupError, refuse } from "./location.ts"
import type { Progress } from "./progress.ts"

/** One statement holds rows up to this size, and one more. */
const batchCharacters = 2_000_000
const batchRows = 1000

/**
 * The lines of a text. Only a line feed ends one: JSON escapes it, but neither the line separator of Unicode
 * nor others that readers of lines know, which are in texts of players.
 */
async function* linesIn(text: AsyncIterable<string>) {
  let begun: Array<string> = []
  for await (const piece of text) {
    const [first = "", ...rest] = piece.split("\n")
    begun.push(first)
    for (const next of rest) {
      yield begun.join("")
      begun = [next]
    }
  }
  if (begun.some((piece) => piece !== "")) throw new Error("it ends in the middle of a row")
}

const linesOf = (file: string) =>
  Stream.suspend(() => {
    const input = createGunzip()
    // The reader of the lines gets the error, which ends both.
    pipeline(createReadStream(file), input, () => undefined)
    return Stream.fromAsyncIterable(
      linesIn(input.setEncoding("utf8")),
      (cause) => new BackupError({ message: `Failed to read ${file}: ${String(cause)}` })
    )
  })

const loadTable = Effect.fnUntraced(function* (
  session: Session,
  table: Manifest["tables"][number],
  file: string
) {
  let batch: Array<string> = []
  let characters = 0
  let rows = 0
  const flush = Effect.suspend(() => {
    const text = `[${batch.join(",")}]`
    batch = []
    characters = 0
    return Effect.map(writeRows(session, table, text), (written) => {
      rows += written
    })
  })
  yield* Stream.runForEach(linesOf(file), (line) => {
    batch.push(line)
    characters += line.length
    return characters > batchCharacters || batch.length >= batchRows ? flush : Effect.void
  })
  if (batch.length > 0) yield* flush
  if (rows !== table.rows) {
    return yield* refuse(`${file} holds ${rows} rows instead of ${table.rows}: it is damaged.`)
  }
})

const shapeText = (tables: ReadonlyArray<TableShape>): string =>
  JSON.stringify(tables.map(({ columns, name }) => ({ name, columns })))

/** Refuses a backup that only a newer release understands. */
export const checkRelease = Effect.fnUntraced(function* ({ migration, version }: Manifest) {
  if (migration <= (yield* newestMigration)) return
  return yield* refuse(`The backup is of release ${version}: use that release, or a newer one.`)
})

interface Target {
  readonly session: Session
  /** The database of the session, for a session that migrates. */
  readonly url: Redacted.Redacted
  readonly check: Effect.Effect<void, BackupError | SqlError>
}

/** Writes the tables into a database without data, which the check asks once they are locked. */
export const restoreTables = Effect.fnUntraced(function* (
  { check, session, url }: Target,
  folder: string,
  manifest: Manifest,
  show: Progress
) {
  yield* show("migrating")
  yield* migrateTo(manifest.migration).pipe(
    Effect.provide(poolLayer({ url, connections: 1 })),
    Effect.catchTag("MigrationError", ({ message }) =>
      refuse(`Failed to make the tables: ${message}`)
    )
  )
  const expected = tablesAt(manifest.migration)
  const present = (yield* listTables(session)).filter(({ name }) => expected.includes(name))
  if (shapeText(present) !== shapeText(manifest.tables)) {
    return yield* refuse(
      "The tables of the database are not those of the backup: name an empty database."
    )
  }
  const { length } = manifest.tables
  const write = Effect.forEach(
    manifest.tables,
    (table, index) =>
      Effect.andThen(
        show(`table ${table.name} (${index + 1} of ${length})`),
        loadTable(session, table, join(folder, `${table.name}.jsonl.gz`))
      ),
    { discard: true }
  )
  yield* replaceContent(session, manifest.tables, manifest.sequences, { check, write })
})
