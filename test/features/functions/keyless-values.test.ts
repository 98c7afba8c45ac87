/** Which files of values have no key, and which are left although they seem to have none. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { keylessValues } from "#server/features/functions/host/keyless-values"

const root = mkdtempSync(join(tmpdir(), "keyless-"))
afterAll(() => rmSync(root, { recursive: true }))

/** Data with a store of two values, of which a database names the first. */
const dataOf = (name: string, column = "blob_id"): string => {
  const data = join(root, name)
  const values = join(data, "kv/STORE/blobs")
  const databases = join(data, "kv/simulator")
  for (const folder of [values, databases]) mkdirSync(folder, { recursive: true })
  for (const value of ["named", "keyless"]) writeFileSync(join(values, value), "value")
  const database = new DatabaseSync(join(databases, "1.sqlite"))
  database.exec(`create table entries (key text, ${column} text)`)
  database.exec("insert into entries values ('a', 'named'), ('b', null)")
  database.close()
  // The runtime keeps its alarms here.
  new DatabaseSync(join(databases, "metadata.sqlite")).close()
  return data
}

const namesOf = (data: string, writtenBefore = Infinity) =>
  keylessValues(data, writtenBefore).map(({ file }) => file.slice(data.length + 1))

describe("values without a key", () => {
  it("finds the files that no database names", () => {
    assert.deepStrictEqual(namesOf(dataOf("one")), ["kv/STORE/blobs/keyless"])
    assert.deepStrictEqual(namesOf(join(root, "nothing")), [])
  })

  it("leaves files that were written a moment ago, if asked so", () => {
    const data = dataOf("young")
    utimesSync(join(data, "kv/STORE/blobs/keyless"), 1000, 1000)
    assert.deepStrictEqual(namesOf(data, 1_000_000), [])
    assert.deepStrictEqual(namesOf(data, 1_000_001), ["kv/STORE/blobs/keyless"])
  })

  it("leaves all files beside a database of a form that it does not know, or without one", () => {
    const data = dataOf("unknown", "value_id")
    assert.deepStrictEqual(namesOf(data), [])
    rmSync(join(data, "kv/simulator"), { recursive: true })
    assert.deepStrictEqual(namesOf(data), [])
  })

  it("follows no links, which code may have made", () => {
    const outside = join(root, "outside")
    mkdirSync(outside)
    writeFileSync(join(outside, "keyless"), "of others")
    const data = dataOf("linked")
    rmSync(join(data, "kv/STORE/blobs"), { recursive: true })
    symlinkSync(outside, join(data, "kv/STORE/blobs"))
    assert.deepStrictEqual(namesOf(data), [])
  })
})
