/** Versions by which a snapshot of functions knows which databases have changed. */
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { isChanged, versionsOf } from "#server/features/functions/storage/pinned-files"

/** A database as a process writes it: in a data directory, with a write-ahead log. */
const writtenDatabase = Effect.gen(function* () {
  const data = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "versions-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  )
  mkdirSync(join(data, "do"))
  const file = join(data, "do/room.sqlite")
  const database = yield* Effect.acquireRelease(
    Effect.sync(() => new DatabaseSync(file)),
    (opened) => Effect.sync(() => opened.close())
  )
  database.exec("pragma journal_mode = wal; create table t (n); insert into t values (1)")
  return { data, database, index: `${file}-shm` }
})

/** Overwrites the header of the index of a log. Other processes see it at once, since all map the file. */
const writeHeader = (index: string, header: Uint8Array) => {
  const descriptor = openSync(index, "r+")
  writeSync(descriptor, header, 0, header.length, 0)
  closeSync(descriptor)
}

describe("versions of databases", () => {
  it.effect(
    "notices a commit whose log was written before the version, and which shows only later",
    () =>
      Effect.gen(function* () {
        const { data, database, index } = yield* writtenDatabase
        const header = () => readFileSync(index).subarray(0, 96)
        const before = Buffer.from(header())
        database.exec("insert into t values (2)")
        const after = Buffer.from(header())
        // As if the process had been paused between the two steps of this commit.
        writeHeader(index, before)
        const versions = versionsOf(data)
        assert.isFalse(isChanged(data, versions))
        writeHeader(index, after)
        assert.isTrue(isChanged(data, versions))
      })
  )

  it.effect("notices a write, and neither a read nor a reader that has gone", () =>
    Effect.gen(function* () {
      const { data, database } = yield* writtenDatabase
      const versions = versionsOf(data)
      const reader = new DatabaseSync(join(data, "do/room.sqlite"), { readOnly: true })
      assert.deepStrictEqual({ ...reader.prepare("select n from t").get() }, { n: 1 })
      assert.isFalse(isChanged(data, versions))
      reader.close()
      assert.isFalse(isChanged(data, versions))
      database.exec("insert into t values (2)")
      assert.isTrue(isChanged(data, versions))
    })
  )
})
