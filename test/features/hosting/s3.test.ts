/** Hosting with its files in a bucket: another runner, a bucket that is away, damage, and removal. */
import { readdir, readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { DateTime, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { makeCollect } from "#server/features/hosting/garbage-collection"
import { BlobStore } from "#server/platform/blobs/store"
import { at, configure } from "#testing/players"
import { Bucket } from "../../support/bucket.ts"
import { call, create, deploy, sha256, upload, visit } from "../../support/hosting.ts"
import { addressOfNode, makeTenants, nodeWith, SharedDatabase } from "../../support/http-stack.ts"

/** A runner with a disk of its own. */
const runner = (
  { folder, port }: Bucket["Service"],
  name: string,
  more: Readonly<Record<string, string>> = {}
) =>
  nodeWith({
    SVC_DATA_DIR: join(folder, name),
    SVC_HOSTING_DOMAIN: "apps.example.net",
    SVC_BLOBS_URL: "s3://games/of/mine",
    SVC_S3_ENDPOINT: `http://127.0.0.1:${port}`,
    AWS_ACCESS_KEY_ID: "S3RVER",
    AWS_SECRET_ACCESS_KEY: "S3RVER",
    ...more
  })

const Node = Layer.unwrap(Effect.map(Bucket, (bucket) => runner(bucket, "one"))).pipe(
  Layer.provideMerge(SharedDatabase.layer),
  Layer.provideMerge(Bucket.layer)
)

const setUp = Effect.gen(function* () {
  const url = yield* addressOfNode
  const sql = yield* SqlClient.SqlClient
  const { folder, state } = yield* Bucket
  const { development, projectId } = yield* makeTenants
  const [row] = yield* sql<{ slug: string }>`select slug from projects where id = ${projectId}`
  const host = `${row?.slug ?? ""}--dev.apps.example.net`
  const target = { url, ...development }
  yield* configure(target, { features: { hosting: true } })
  const { environmentId } = target
  const objects = Effect.promise(async () => {
    const names = await readdir(join(folder, "objects", "games"), { recursive: true })
    return names.filter((name) => name.includes(environmentId) && name.endsWith("_object"))
  })
  const cached = (name: string) => join(folder, name, "blob-cache", "files", environmentId)
  return { host, objects, cached, state, target, open: (path: string) => visit(url, host, path) }
})

/** Starts another runner; returns its base URL. */
const another = Effect.fnUntraced(function* (
  name: string,
  more?: Readonly<Record<string, string>>
) {
  const layer = runner(yield* Bucket, name, more)
  const node = yield* Layer.buildWithMemoMap(layer, yield* Layer.makeMemoMap, yield* Effect.scope)
  return yield* Effect.provideContext(addressOfNode, node)
})

const page = "<!doctype html><p>Home"
const big = "0123456789".repeat(40_000)
const files = { "index.html": page, "big.bin": big, "app.js": "let a = 1;".repeat(1000) }

layer(Node, { timeout: "30 seconds" })("hosting with a bucket", (it) => {
  it.effect("serves files of an S3 bucket on a runner that did not receive them", () =>
    Effect.gen(function* () {
      const { host, objects, target } = yield* setUp
      yield* deploy(target, files)
      // Three files, two of which have two compressed forms.
      assert.lengthOf(yield* objects, 7)
      const other = yield* another("two")
      const [home, part, script] = yield* Effect.all(
        [
          visit(other, host, "/"),
          visit(other, host, "/big.bin", { range: "bytes=10-19" }),
          visit(other, host, "/app.js", { "accept-encoding": "br" })
        ],
        { concurrency: 3 }
      )
      assert.strictEqual(home.body.toString(), page)
      assert.deepStrictEqual([part.status, part.body.toString()], [206, "0123456789"])
      assert.strictEqual(script.headers["content-encoding"], "br")
      const many = Array.from({ length: 20 }, () => visit(other, host, "/big.bin"))
      for (const { body } of yield* Effect.all(many, { concurrency: 20 })) {
        assert.strictEqual(body.toString(), big)
      }
    })
  )

  it.effect(
    "keeps serving cached files of a live app while the S3 bucket is away",
    () =>
      Effect.gen(function* () {
        const { host, open, state, target } = yield* setUp
        yield* deploy(target, files)
        const other = yield* another("three")
        assert.strictEqual((yield* visit(other, host, "/big.bin")).status, 200)
        state.away = true
        assert.strictEqual((yield* open("/big.bin")).body.toString(), big)
        assert.strictEqual((yield* visit(other, host, "/big.bin")).body.toString(), big)
        assert.isAtLeast((yield* visit(other, host, "/")).status, 500)
        const next = { "index.html": "next" }
        yield* create(target, next)
        assert.strictEqual((yield* upload(target, "next")).status, 503)
        state.away = false
        // Nothing counts as lost.
        assert.strictEqual((yield* visit(other, host, "/")).body.toString(), page)
        yield* deploy(target, next)
        assert.strictEqual((yield* visit(other, host, "/")).body.toString(), "next")
      }),
    { tags: "long" }
  )

  it.effect(
    "keeps the cache of an S3 bucket below its bound, and serves files that have left it",
    () =>
      Effect.gen(function* () {
        const { cached, host, target } = yield* setUp
        const many = Object.fromEntries(
          Array.from({ length: 5 }, (_, n) => [`${n}.bin`, `${n}`.repeat(300_000)])
        )
        yield* deploy(target, many)
        const other = yield* another("four", { SVC_BLOB_CACHE_BYTES: "1000000" })
        for (const [path, content] of [...Object.entries(many), ...Object.entries(many)]) {
          assert.strictEqual((yield* visit(other, host, `/${path}`)).body.toString(), content, path)
        }
        assert.lengthOf(yield* Effect.promise(() => readdir(cached("four"))), 3)
      }),
    { tags: "long" }
  )

  it.effect(
    "serves no damaged object of an S3 bucket, and asks for its file again",
    () =>
      Effect.gen(function* () {
        const { host, target } = yield* setUp
        yield* deploy(target, files)
        const { folder } = yield* Bucket
        yield* Effect.promise(async () => {
          const root = join(folder, "objects", "games", "of", "mine", target.environmentId)
          const name = (await readdir(root)).find(
            (file) => file === `${sha256(big)}._S3rver_object`
          )
          const path = join(root, name ?? "")
          await writeFile(path, (await readFile(path, "utf8")).replace("5", "6"))
        })
        const other = yield* another("five")
        assert.isAtLeast((yield* visit(other, host, "/big.bin")).status, 500)
        const again = yield* create(target, files)
        assert.deepStrictEqual(at(again.body, "missing"), [sha256(big)])
        yield* deploy(target, files)
        assert.strictEqual((yield* visit(other, host, "/big.bin")).body.toString(), big)
      }),
    { tags: "long" }
  )

  it.effect("replaces a damaged copy in the cache by the object of the S3 bucket", () =>
    Effect.gen(function* () {
      const { cached, host, target } = yield* setUp
      yield* deploy(target, files)
      yield* visit(yield* another("six"), host, "/big.bin")
      const copy = join(cached("six"), sha256(big))
      yield* Effect.promise(() => writeFile(copy, "damaged"))
      // The runner starts again, and has verified nothing yet.
      const again = yield* another("six")
      assert.strictEqual((yield* visit(again, host, "/big.bin")).body.toString(), big)
      assert.strictEqual(yield* Effect.promise(() => readFile(copy, "utf8")), big)
      assert.deepStrictEqual(at((yield* create(target, files)).body, "missing"), [])
    })
  )

  it.effect(
    "removes S3 objects that no deployment names, and those of a deleted project",
    () =>
      Effect.gen(function* () {
        const { objects, target } = yield* setUp
        const collect = yield* makeCollect
        const store = yield* BlobStore
        const now = yield* DateTime.now
        yield* create(target, { "a.html": "a" })
        yield* upload(target, "a")
        assert.lengthOf(yield* objects, 1)
        for (const hours of [25, 50, 75]) yield* collect(DateTime.add(now, { hours }))
        assert.lengthOf(yield* objects, 0)
        yield* deploy(target, files)
        assert.lengthOf(yield* objects, 7)
        yield* store.removeAll(target.environmentId)
        assert.lengthOf(yield* objects, 0)
        assert.strictEqual((yield* call(target, "GET", "hosting")).status, 200)
      }),
    { tags: "long" }
  )
})
