/** Deployments: creation, upload, completion, activation, history, limits and the removal of files. */
import { rm, readdir } from "node:fs/promises"
import { request as httpRequest } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { DateTime, Effect, Layer } from "effect"
import { makeCollect } from "#server/features/hosting/garbage-collection"
import { at, configure, request, type TestTarget } from "#testing/players"
import { call, create, deploy, manifestOf, sha256, upload } from "../../support/hosting.ts"
import { codeOf } from "../../support/moderation-calls.ts"
import { addressOfNode, makeTenants, nodeWith, SharedDatabase } from "../../support/http-stack.ts"

const dataDir = join(tmpdir(), `svc-hosting-${process.pid}`)

const Files = Layer.effectDiscard(
  Effect.addFinalizer(() => Effect.promise(() => rm(dataDir, { recursive: true, force: true })))
)

const Node = nodeWith({ SVC_DATA_DIR: dataDir, SVC_ENVIRONMENT_BLOB_BYTES: "1000000" }).pipe(
  Layer.provideMerge(SharedDatabase.layer),
  Layer.provideMerge(Files)
)

const setUp = Effect.gen(function* () {
  const url = yield* addressOfNode
  const { development, production } = yield* makeTenants
  const target = { url, ...development }
  yield* configure(target, { features: { hosting: true } })
  return { target, production: { url, ...production } }
})

const index = "<!doctype html><p>Hello"
const script = "export const answer = 42"

/** Announces an upload of so many bytes, and sends one; returns the status of the answer. */
const announce = ({ secretKey, url }: TestTarget, content: string, bytes: number) =>
  Effect.callback<number | undefined>((resume) => {
    const sent = httpRequest(`${url}/v1/blobs/${sha256(content)}`, {
      method: "PUT",
      headers: { "x-svc-key": secretKey, "content-length": bytes },
      agent: false
    })
    sent.on("response", ({ statusCode }) => {
      resume(Effect.succeed(statusCode))
      sent.destroy()
    })
    sent.on("error", (error) => resume(Effect.die(error)))
    sent.write(content.slice(0, 1))
  })

layer(Node, { timeout: "60 seconds" })("deployments", (it) => {
  it.effect("asks a deployment only for files that the environment does not have", () =>
    Effect.gen(function* () {
      const { target } = yield* setUp
      const files = { "index.html": index, "app.js": script, "copy.js": script }
      const created = yield* create(target, files, "First")
      assert.strictEqual(created.status, 200)
      assert.deepInclude(created.body, {
        version: 1,
        status: "uploading",
        live: false,
        message: "First",
        missing: [sha256(index), sha256(script)].toSorted(),
        missingBytes: index.length + script.length
      })
      const early = yield* call(target, "POST", "deployments/1/finalize", {})
      assert.strictEqual(early.status, 409)
      assert.strictEqual(codeOf(early), "blobs_missing")
      assert.deepStrictEqual(
        at(early.body, "error", "details", "missing"),
        at(created.body, "missing")
      )
      assert.deepStrictEqual((yield* upload(target, index)).body, {
        sha256: sha256(index),
        size: index.length
      })
      assert.strictEqual((yield* upload(target, index)).status, 200)
      yield* upload(target, script)
      const done = yield* call(target, "POST", "deployments/1/finalize", { activate: true })
      assert.deepInclude(done.body, { status: "ready", live: true, missing: [], missingBytes: 0 })
      assert.strictEqual((yield* call(target, "POST", "deployments/1/finalize", {})).status, 200)
      const second = yield* create(target, { "index.html": `${index}!`, "app.js": script })
      assert.deepStrictEqual(at(second.body, "missing"), [sha256(`${index}!`)])
    })
  )

  it.effect(
    "refuses an upload with another hash, too few or too many bytes, and stores none of it",
    () =>
      Effect.gen(function* () {
        const { target } = yield* setUp
        yield* create(target, { "index.html": index })
        const wrong = [index.replace("H", "h"), index.slice(1), `${index} and more`, ""]
        for (const content of wrong) {
          const answer = yield* upload(target, content, sha256(index))
          assert.deepStrictEqual([answer.status, codeOf(answer)], [400, "blob_hash_mismatch"])
        }
        const missing = yield* call(target, "POST", "deployments/1/finalize", {})
        assert.strictEqual(codeOf(missing), "blobs_missing")
        assert.strictEqual((yield* upload(target, index)).status, 200)
      })
  )

  it.effect("refuses an upload of a file that no deployment of the environment names", () =>
    Effect.gen(function* () {
      const { production, target } = yield* setUp
      yield* configure(production, { features: { hosting: true } })
      yield* create(target, { "index.html": index })
      assert.strictEqual((yield* upload(production, index)).status, 404)
      assert.strictEqual((yield* upload(target, script)).status, 404)
      assert.strictEqual((yield* upload(target, index, "../../etc/passwd")).status, 404)
    })
  )

  it.effect(
    "refuses deployed paths that leave the folder, differ only in case, or belong to the service",
    () =>
      Effect.gen(function* () {
        const { target } = yield* setUp
        const wrong = [
          "../x",
          "a/../../x",
          "/etc/passwd",
          "a\\b",
          "a//b",
          "./a",
          "a/",
          "a\u0000b",
          "a\nb",
          "cafe\u0301.html",
          ".fn/x",
          ".card.png",
          ".card/x.png",
          ".svc/config.js",
          ".well-known/svc.json",
          "\ud800",
          "",
          "x".repeat(513)
        ]
        for (const path of wrong) {
          const answer = yield* create(target, { "index.html": index, [path]: script })
          assert.deepStrictEqual([path, codeOf(answer)], [path, "invalid_request"])
          assert.match(String(at(answer.body, "error", "details", "issues", 0, "path")), /^files\[/)
        }
        const clash = yield* create(target, { "a/Index.html": index, "A/index.html": script })
        assert.include(
          String(at(clash.body, "error", "details", "issues", 0, "message")),
          "A/index"
        )
        const right = [
          ".well-known/assetlinks.json",
          "..a/b..",
          ".cards",
          "caf\u00e9.html",
          "a b.js"
        ]
        const files = Object.fromEntries(right.map((path) => [path, index]))
        assert.strictEqual((yield* create(target, files)).status, 200)
      })
  )

  it.effect(
    "takes 20,000 files in a deployment and refuses one more",
    () =>
      Effect.gen(function* () {
        const { target } = yield* setUp
        const file = (n: number) => ({ path: `f/${n}.txt`, sha256: sha256(`${n}`), size: 5 })
        const files = Array.from({ length: 20_001 }, (_, n) => file(n))
        const over = yield* call(target, "POST", "deployments", { files })
        assert.strictEqual(over.status, 400)
        const whole = yield* call(target, "POST", "deployments", { files: files.slice(1) })
        assert.strictEqual(whole.status, 200)
        assert.strictEqual(at(whole.body, "fileCount"), 20_000)
        assert.strictEqual(at(whole.body, "missingBytes"), 100_000)
        const got = yield* call(target, "GET", "deployments/1")
        assert.strictEqual(at(got.body, "files", 19_999, "size"), 5)
      }),
    { tags: "long" }
  )

  it.effect("never makes a deployment with invalid settings live", () =>
    Effect.gen(function* () {
      const { target } = yield* setUp
      yield* deploy(target, { "index.html": "one" })
      const wrong: Readonly<Record<string, string>> = {
        '{ "spa": "no" }': '["svc.hosting.json"].spa',
        '{ "sap": true }': '["svc.hosting.json"].sap',
        '{ "spa": true': '["svc.hosting.json"]',
        "": '["svc.hosting.json"]'
      }
      for (const [settings, path] of Object.entries(wrong)) {
        const created = yield* create(target, { "index.html": "one", "svc.hosting.json": settings })
        yield* upload(target, settings)
        const finalize = `deployments/${String(at(created.body, "version"))}/finalize`
        const { body, status } = yield* call(target, "POST", finalize, { activate: true })
        assert.strictEqual(status, 400, settings)
        assert.strictEqual(at(body, "error", "code"), "invalid_request", settings)
        assert.strictEqual(at(body, "error", "details", "issues", 0, "path"), path)
      }
      const { body } = yield* call(target, "GET", "hosting")
      assert.strictEqual(at(body, "live", "version"), 1)
      const large = yield* create(target, { "svc.hosting.json": " ".repeat(16 * 1024 + 1) })
      assert.strictEqual(at(large.body, "error", "details", "issues", 0, "path"), "files[0].size")
    })
  )

  it.effect("refuses a deployment beyond the storage quota of the environment", () =>
    Effect.gen(function* () {
      const { target } = yield* setUp
      yield* deploy(target, { "index.html": index })
      const files = [{ path: "big", sha256: sha256("big"), size: 1_000_000 }]
      const answer = yield* call(target, "POST", "deployments", { files })
      assert.deepStrictEqual([answer.status, codeOf(answer)], [409, "storage_quota_exceeded"])
      assert.deepStrictEqual(at(answer.body, "error", "details"), {
        limit: 1_000_000,
        used: index.length
      })
      assert.strictEqual(
        at((yield* call(target, "GET", "hosting")).body, "usedBytes"),
        index.length
      )
    })
  )

  it.effect("switches the live version of an app back and forth, and keeps the history", () =>
    Effect.gen(function* () {
      const { target } = yield* setUp
      yield* deploy(target, { "index.html": "one" })
      const second = yield* deploy(target, { "index.html": "two" }, { activate: false })
      const live = () =>
        Effect.map(call(target, "GET", "hosting"), ({ body }) => at(body, "live", "version"))
      assert.strictEqual(yield* live(), 1)
      yield* Effect.all(
        [
          call(target, "POST", `deployments/${second.id}/activate`),
          call(target, "POST", "deployments/1/activate")
        ],
        { concurrency: 2 }
      )
      assert.include([1, 2], yield* live())
      yield* call(target, "POST", "deployments/2/activate")
      assert.strictEqual(yield* live(), 2)
      const { body } = yield* call(target, "GET", "deployments?limit=1")
      assert.deepInclude(at(body, "deployments", 0), { version: 2, live: true })
      assert.strictEqual(at(body, "nextCursor"), "2")
      assert.isUndefined(at(body, "deployments", 0, "files"))
      const next = yield* call(target, "GET", "deployments?limit=1&cursor=2")
      assert.deepInclude(at(next.body, "deployments", 0), { version: 1, live: false })
      assert.isNull(at(next.body, "nextCursor"))
      const one = yield* call(target, "GET", "deployments/1")
      assert.deepStrictEqual(at(one.body, "files"), manifestOf({ "index.html": "one" }))
      for (const ref of ["9", "dep_1", "x", "0"]) {
        assert.strictEqual((yield* call(target, "GET", `deployments/${ref}`)).status, 404)
        assert.strictEqual((yield* call(target, "POST", `deployments/${ref}/activate`)).status, 404)
      }
    })
  )

  it.effect("refuses deployments and uploads with feature_disabled while hosting is off", () =>
    Effect.gen(function* () {
      const { target } = yield* setUp
      yield* configure(target, {})
      const answer = yield* create(target, { "index.html": index })
      assert.deepStrictEqual([answer.status, codeOf(answer)], [403, "feature_disabled"])
      assert.deepStrictEqual(at(answer.body, "error", "details"), {
        feature: "hosting",
        configPath: "features.hosting"
      })
      assert.strictEqual((yield* upload(target, index)).status, 403)
    })
  )

  it.effect("refuses a file beyond 50 MB before its bytes, in a deployment and in an upload", () =>
    Effect.gen(function* () {
      const { target } = yield* setUp
      yield* create(target, { "index.html": index })
      const files = [{ path: "big", sha256: sha256("big"), size: 50 * 1024 * 1024 + 1 }]
      assert.strictEqual((yield* call(target, "POST", "deployments", { files })).status, 400)
      const { status } = yield* request(`${target.url}/v1/blobs/${sha256(index)}`, {
        method: "PUT",
        headers: { "x-svc-key": target.secretKey },
        body: new Uint8Array(50 * 1024 * 1024 + 1)
      })
      assert.strictEqual(status, 413)
      assert.strictEqual(yield* announce(target, index, 50 * 1024 * 1024 + 1), 413)
    })
  )
})

layer(Node, { timeout: "60 seconds" })("files of deployments", (it) => {
  const filesOf = (environmentId: string) =>
    Effect.promise(() => readdir(join(dataDir, "blobs", environmentId)))

  /** Collects as if that much later. */
  const collectAfter = Effect.fnUntraced(function* (duration: { days?: number; hours?: number }) {
    const collect = yield* makeCollect
    yield* collect(DateTime.add(yield* DateTime.now, duration))
  })

  it.effect(
    "keeps deployed files of the newest 20 versions, and for 90 days after a version was live",
    () =>
      Effect.gen(function* () {
        const { target } = yield* setUp
        for (let version = 1; version <= 22; version++) {
          yield* deploy(target, { "index.html": `version ${version}` })
        }
        yield* collectAfter({ days: 89 })
        assert.strictEqual((yield* call(target, "GET", "deployments/1")).status, 200)
        yield* collectAfter({ days: 91 })
        assert.strictEqual((yield* call(target, "GET", "deployments/2")).status, 404)
        assert.strictEqual((yield* call(target, "GET", "deployments/3")).status, 200)
        assert.lengthOf(yield* filesOf(target.environmentId), 22)
        yield* collectAfter({ days: 93 })
        assert.lengthOf(yield* filesOf(target.environmentId), 20)
        const again = yield* create(target, { "index.html": "version 1", "2": "version 22" })
        assert.deepStrictEqual(at(again.body, "missing"), [sha256("version 1")])
      })
  )

  it.effect(
    "keeps files of an unfinished deployment for a day, and longer for a new one that names them",
    () =>
      Effect.gen(function* () {
        const { target } = yield* setUp
        const files = { "index.html": "a", "b.html": "b" }
        yield* create(target, files)
        yield* upload(target, "a")
        yield* collectAfter({ hours: 23 })
        const { body } = yield* call(target, "GET", "deployments/1")
        assert.deepStrictEqual(at(body, "missing"), [sha256("b")])
        yield* collectAfter({ hours: 25 })
        assert.strictEqual((yield* call(target, "GET", "deployments/1")).status, 404)
        assert.deepStrictEqual(yield* filesOf(target.environmentId), [sha256("a")])
        const again = yield* create(target, files)
        assert.deepStrictEqual(at(again.body, "missing"), [sha256("b")])
        yield* collectAfter({ hours: 23 })
        assert.deepStrictEqual(yield* filesOf(target.environmentId), [sha256("a")])
        yield* collectAfter({ hours: 50 })
        yield* collectAfter({ hours: 75 })
        assert.deepStrictEqual(yield* filesOf(target.environmentId), [])
        assert.strictEqual(at((yield* call(target, "GET", "hosting")).body, "usedBytes"), 0)
      })
  )
})
