/** `svc backup` beside a running service, and `svc restore` into an empty one: all rows, files and keys. */
import { appendFile, chmod, cp, mkdir, readdir, readFile, rm, truncate } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { gunzipSync } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { at, request } from "#testing/players"
import { startRunner } from "#testing/runners"
import { makeFolder } from "../support/cli/svc.ts"
import { play, readAll } from "../support/restorable-data.ts"
import { targetOf } from "../support/runner-target.ts"

const modules = fileURLToPath(new URL("../../node_modules/.bin", import.meta.url))

/** A runner with the embedded Postgres. */
const embedded = { databaseUrl: "", env: { PATH: `${modules}:/usr/bin:/bin` } }

const filesIn = async (folder: string): Promise<ReadonlyArray<string>> =>
  (await readdir(folder, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length))
    .toSorted()

/** The rows of each table, in any order. */
const rowsOf = async (backup: string) => {
  const tables = await readdir(join(backup, "database"))
  return Promise.all(
    tables.toSorted().map(async (name) => {
      const text = gunzipSync(await readFile(join(backup, "database", name))).toString()
      return [name, text.split("\n").toSorted()] as const
    })
  )
}

const manifestOf = async (backup: string): Promise<unknown> =>
  JSON.parse(await readFile(join(backup, "manifest.json"), "utf8"))

/** Like the data of functions: a folder of an environment with a file. */
const writeFunctionData = async (dataDir: string) => {
  const folder = join(dataDir, "functions/env_1/kv")
  await mkdir(folder, { recursive: true })
  await appendFile(join(folder, "entry"), "value")
}

/** A temporary folder with two data directories, and `svc` on one of them, which must succeed. */
const twoServices = Effect.gen(function* () {
  const folder = yield* makeFolder()
  // As root, Postgres runs as an unprivileged user, who must be able to enter.
  yield* Effect.promise(() => chmod(folder.path, 0o755))
  const run = Effect.fnUntraced(function* (words: string, dataDir: string) {
    const { code, stderr, stdout } = yield* folder.svc(words, { env: { SVC_DATA_DIR: dataDir } })
    assert.deepStrictEqual([code, stderr], [0, ""], words)
    return stdout
  })
  return { folder, run, first: join(folder.path, "first"), second: join(folder.path, "second") }
})

type TwoServices = Effect.Success<typeof twoServices>

/** Backs the first service up while it runs, writes to it, and stops it. */
const saveRunning = Effect.fnUntraced(function* (
  { first, run }: TwoServices,
  beforeStop: Effect.Effect<void> = Effect.void
) {
  const runner = yield* startRunner({ ...embedded, dataDir: first })
  const target = yield* targetOf(first, runner.url)
  const { headers, player } = yield* play(target)
  yield* Effect.promise(() => writeFunctionData(first))
  const before = yield* readAll(target, headers)
  assert.match(yield* run("backup saved", first), /^Saved to saved: \d+ rows of \d+ tables/)
  const later = { method: "PUT", headers, body: { data: "after the backup" } }
  yield* request(`${target.url}/v1/saves/later`, later)
  yield* beforeStop
  yield* runner.stop
  return { before, headers, refreshToken: player.refreshToken }
}, Effect.scoped)

/** Restores the backup into the second service, and asserts that a backup of that one is the same. */
const restoreElsewhere = Effect.fnUntraced(function* ({ folder, run, second }: TwoServices) {
  assert.match(yield* run("restore saved", second), /^Restored saved of 20/)
  yield* run("backup again", second)
  const backups = [join(folder.path, "saved"), join(folder.path, "again")]
  const [one, two] = yield* Effect.promise(() => Promise.all(backups.map(rowsOf)))
  assert.deepStrictEqual(two, one)
  const manifests = yield* Effect.promise(() => Promise.all(backups.map(manifestOf)))
  for (const name of ["tables", "sequences", "masterKey", "migration", "blobs"]) {
    assert.deepStrictEqual(at(manifests[1], name), at(manifests[0], name), name)
  }
  const [files = [], others] = yield* Effect.promise(() => Promise.all(backups.map(filesIn)))
  assert.deepStrictEqual(others, files)
  assert.include(files, "/data/master.key")
})

describe("svc backup", { tags: "long" }, () => {
  it.live("saves a running service, and restores its rows, files and keys elsewhere", () =>
    Effect.gen(function* () {
      const services = yield* twoServices
      yield* saveRunning(services)
      yield* restoreElsewhere(services)
    }).pipe(Effect.scoped)
  )

  it.live("saves a running service as of one moment, and restores a service that works on", () =>
    Effect.gen(function* () {
      const services = yield* twoServices
      const { first, folder, second } = services
      const restoreFirst = folder.svc("restore saved", { env: { SVC_DATA_DIR: first } })
      const { before, headers, refreshToken } = yield* saveRunning(
        services,
        Effect.map(restoreFirst, (busy) => {
          assert.strictEqual(busy.code, 1)
          assert.include(busy.stderr, "stop every runner first")
        })
      )
      const used = yield* restoreFirst
      assert.strictEqual(used.code, 1)
      assert.include(used.stderr, "empty service")
      yield* restoreElsewhere(services)

      const runner = yield* startRunner({ ...embedded, dataDir: second })
      const target = yield* targetOf(second, runner.url)
      assert.deepStrictEqual(yield* readAll(target, headers), before)
      const later = yield* request(`${target.url}/v1/saves/later`, { headers })
      assert.strictEqual(later.status, 404, "a write after the backup is in it")
      // Identities of new rows begin behind those of the backup, and all triggers and keys are back.
      yield* play(target)
      const deleted = yield* request(`${target.url}/v1/players/me`, {
        method: "DELETE",
        headers,
        body: { refreshToken }
      })
      assert.strictEqual(deleted.status, 200)
      const fresh = yield* readAll(target, (yield* play(target)).headers)
      assert.deepStrictEqual(at(fresh.stats, "stats"), at(before.stats, "stats"))
    }).pipe(Effect.scoped)
  )

  it.live("refuses what is no whole backup, another key, and a folder in use", () =>
    Effect.gen(function* () {
      const folder = yield* makeFolder({ SVC_DATA_DIR: "data" })
      yield* Effect.promise(() => chmod(folder.path, 0o755))
      const refusal = Effect.fnUntraced(function* (
        words: string,
        env: Readonly<Record<string, string>> = {}
      ) {
        const { code, stderr } = yield* folder.svc(words, { env })
        assert.strictEqual(code, 1, words)
        return stderr
      })
      assert.include(yield* refusal("backup"), "has no database")
      assert.include(yield* refusal("restore nowhere"), "no whole backup")
      const dataDir = join(folder.path, "data")
      yield* Effect.scoped(startRunner({ ...embedded, dataDir }))
      assert.strictEqual((yield* folder.svc("backup saved --json")).code, 0)
      assert.include(yield* refusal("backup saved"), "is not empty")
      const otherKey = Buffer.alloc(32, 1).toString("base64")
      assert.include(
        yield* refusal("restore saved", { SVC_DATA_DIR: "other", SVC_MASTER_KEY: otherKey }),
        "another key"
      )
      const damaged = join(folder.path, "damaged")
      yield* Effect.promise(async () => {
        await cp(join(folder.path, "saved"), damaged, { recursive: true })
        await truncate(join(damaged, "database/projects.jsonl.gz"), 30)
      })
      const restored = { SVC_DATA_DIR: "restored" }
      assert.match(yield* refusal("restore damaged", restored), /is damaged: .*projects/)
      assert.match(yield* refusal("backup verify damaged"), /is damaged: .*projects/)
      const verified = yield* folder.svc("backup verify saved")
      assert.strictEqual(verified.code, 0, verified.stderr)
      assert.match(verified.stdout, /^Verified saved of 20/)
      assert.deepStrictEqual((yield* folder.svc("restore saved", { env: restored })).code, 0)
      yield* Effect.promise(() => rm(join(damaged, "manifest.json")))
      assert.include(yield* refusal("restore damaged"), "no whole backup")
    }).pipe(Effect.scoped)
  )
})
