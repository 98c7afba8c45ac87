/** What a verification notices, and what a backup and a restore refuse. */
import { appendFile, cp, readFile, rename, rm, stat, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Redacted } from "effect"
import { dump } from "#server/backup/dump"
import { load } from "#server/backup/load"
import { keyIdOf } from "#server/backup/manifest"
import { verify } from "#server/backup/verify"
import {
  contentOf,
  makeService,
  makeUsedService,
  progress,
  refusalOf,
  restore,
  run,
  save,
  verified,
  write
} from "../support/backup-service.ts"
import { masterKeyOf } from "../support/master-keys.ts"

describe("a verification", () => {
  /** A backup with files of apps and of functions. */
  const makeBackup = Effect.gen(function* () {
    const service = yield* makeUsedService
    const { dataDir } = service.location
    yield* write(join(dataDir, "master.key"), masterKeyOf(1))
    yield* write(join(dataDir, "blobs/env_1/abc"), "a file of an app")
    yield* write(join(dataDir, "functions/env_1/kv/entry"), "a value")
    yield* save(service)
    return service
  })

  const files = [
    "manifest.json",
    "sha256sums",
    "database/players.jsonl.gz",
    "data/master.key",
    "data/blobs/env_1/abc",
    "data/functions/env_1/kv/entry"
  ]

  const damages: Readonly<Record<string, (path: string) => Promise<void>>> = {
    "one changed bit": async (path) => {
      const bytes = await readFile(path)
      const middle = bytes.length >> 1
      bytes.writeUInt8(bytes.readUInt8(middle) ^ 1, middle)
      await writeFile(path, bytes)
    },
    "its end cut off": async (path) => writeFile(path, (await readFile(path)).subarray(0, -1)),
    "no bytes": (path) => writeFile(path, ""),
    "more bytes": (path) => appendFile(path, "more"),
    "another name": (path) => rename(path, `${path}.old`),
    "another file beside it": (path) => writeFile(`${path}.more`, "")
  }

  it.live("notices each file with a changed bit, cut off, emptied, longer, lost or added", () =>
    run(
      Effect.gen(function* () {
        const { folder } = yield* makeBackup
        yield* verified(folder)
        const damaged = `${folder}-damaged`
        const target = yield* makeService
        for (const file of files) {
          for (const [name, damage] of Object.entries(damages)) {
            yield* Effect.promise(async () => {
              await rm(damaged, { recursive: true, force: true })
              await cp(folder, damaged, { recursive: true })
              await damage(join(damaged, file))
            })
            const reason = yield* refusalOf(verified(damaged))
            assert.match(reason, /is damaged|no whole backup/, `${file} with ${name}`)
            const restored = yield* refusalOf(load(target.location, damaged, progress))
            assert.strictEqual(restored, reason, `${file} with ${name}`)
          }
        }
      })
    )
  )

  it.live(
    "drops the scratch schema of a verification that was killed, and leaves that of a running one",
    () =>
      run(
        Effect.gen(function* () {
          const service = yield* makeBackup
          const url = service.location.databaseUrl
          yield* service.sql("create schema svc_verify_killed")
          yield* service.sql("create schema svc_verify_running")
          const schemas = yield* service.inSession(
            Effect.fnUntraced(function* (session) {
              yield* session.query(
                "select pg_advisory_lock(hashtextextended('svc_verify_running', 0))"
              )
              yield* verify(service.folder, url, progress).pipe(Effect.provide(NodeServices.layer))
              return yield* session.query(
                "select nspname::text as name from pg_namespace where nspname like 'svc_verify%'"
              )
            })
          )
          assert.deepStrictEqual(schemas.rows, [{ name: "svc_verify_running" }])
        })
      )
  )
})

describe("a backup that cannot be whole", () => {
  it.live("leaves nothing behind when it fails", () =>
    run(
      Effect.gen(function* () {
        const service = yield* makeUsedService
        // A folder in the place of a file.
        yield* write(join(service.location.dataDir, "master.key/file"), "")
        yield* refusalOf(save(service))
        const left = yield* Effect.promise(() => stat(service.folder).catch(() => undefined))
        assert.isUndefined(left)
      })
    )
  )

  it.live("refuses another data directory than that of the database", () =>
    run(
      Effect.gen(function* () {
        const service = yield* makeUsedService
        yield* service.sql("insert into blobs values ('env_1', 'abc', 1, now())")
        assert.match(yield* refusalOf(save(service)), /names 1 files of apps, and .* SVC_DATA_DIR/)
      })
    )
  )

  it.live(
    "refuses another master key than that of the database, and names the one it needs without any",
    () =>
      run(
        Effect.gen(function* () {
          const service = yield* makeUsedService
          const id = keyIdOf(masterKeyOf(1))
          yield* service.sql("insert into signing_keys values ('kid', '{}', $1, now())", [
            `${id}.a.b`
          ])
          const given = (number: number) => ({
            ...service.location,
            masterKey: Option.some(Redacted.make(masterKeyOf(number)))
          })
          assert.match(yield* refusalOf(dump(given(2), service.folder, progress)), /is another key/)
          const { manifest } = yield* save(service)
          assert.deepStrictEqual(manifest.masterKey, { id, included: false })
          assert.match(yield* refusalOf(restore(service.folder)), /set SVC_MASTER_KEY/)
          yield* restore(service.folder, { masterKey: given(1).masterKey })
          // The key was replaced since.
          const olderMasterKeys = [Redacted.make(masterKeyOf(1))]
          yield* restore(service.folder, { masterKey: given(2).masterKey, olderMasterKeys })
        })
      )
  )
})

describe("a restore", () => {
  it.live("succeeds after one that could not write its files", () =>
    run(
      Effect.gen(function* () {
        const service = yield* makeUsedService
        yield* write(join(service.location.dataDir, "blobs/env_1/abc"), "a file")
        yield* save(service)
        const target = yield* makeService
        yield* write(target.location.blobs, "a file in the place of the folder")
        assert.match(
          yield* refusalOf(load(target.location, service.folder, progress)),
          /Failed to write/
        )
        yield* Effect.promise(() => rm(target.location.blobs))
        yield* load(target.location, service.folder, progress)
        assert.deepStrictEqual(yield* contentOf(target), yield* contentOf(service))
      })
    )
  )

  it.live("leaves the database of another program as it is", () =>
    run(
      Effect.gen(function* () {
        const service = yield* makeUsedService
        yield* save(service)
        const other = yield* makeService
        yield* other.sql("drop schema public cascade")
        yield* other.sql("create schema public")
        yield* other.sql("create table notes (id int)")
        assert.match(
          yield* refusalOf(load(other.location, service.folder, progress)),
          /such as notes/
        )
        const { rows } = yield* other.sql(
          "select relname::text as name from pg_class where relnamespace = 'public'::regnamespace"
        )
        assert.deepStrictEqual(rows, [{ name: "notes" }])
      })
    )
  )

  it.live(
    "says who uses the database, and where files of apps belong that a bucket will hold",
    () =>
      run(
        Effect.gen(function* () {
          const service = yield* makeUsedService
          yield* write(join(service.location.dataDir, "blobs/env_1/abc"), "a file")
          yield* save(service)
          const target = yield* makeService
          const busy = yield* target.inSession(() =>
            refusalOf(load(target.location, service.folder, progress)).pipe(
              Effect.provide(NodeServices.layer)
            )
          )
          assert.match(busy, /in use by \S+\. Close .*stop every runner/)
          const bucket = { ...target.location, hasBucket: true }
          assert.match(
            yield* refusalOf(load(bucket, service.folder, progress)),
            /SVC_BLOBS_URL names a bucket.*into the bucket/
          )
        })
      )
  )
})
