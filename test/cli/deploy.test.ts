/** `svc deploy`, `rollback` and `deployments` against a real service. */
import { mkdir } from "node:fs/promises"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { at, configure } from "#testing/players"
import { makeFolder } from "../support/cli/svc.ts"
import { call, create, upload } from "../support/hosting.ts"
import { hostingNode } from "../support/hosting-node.ts"
import { addressOfNode, makeTenants } from "../support/http-stack.ts"

const { Node } = hostingNode("deploy")

const setUp = Effect.gen(function* () {
  const url = yield* addressOfNode
  const { development } = yield* makeTenants
  const target = { url, ...development }
  yield* configure(target, { features: { hosting: true } })
  const folder = yield* makeFolder({ SVC_URL: url, SVC_SECRET_KEY: development.secretKey })
  for (const below of ["dist", "dist/assets", "dist/drafts", "dist/node_modules"]) {
    yield* Effect.promise(() => mkdir(join(folder.path, below)))
  }
  yield* folder.write("dist/index.html", "<p>Hello")
  yield* folder.write("dist/assets/a.js", "1")
  yield* folder.write("dist/assets/copy.js", "1")
  yield* folder.write("dist/drafts/x.txt", "not yet")
  yield* folder.write("dist/node_modules/x.js", "never")
  yield* folder.write("dist/.env", "SECRET=1")
  yield* folder.write("dist/.svcignore", "drafts/\n*.psd\n")
  return { folder, target }
})

const json = (text: string): unknown => JSON.parse(text)

layer(Node, { timeout: "60 seconds" })("svc deploy", (it) => {
  it.effect("uploads what has changed, leaves out ignored files, and goes back", () =>
    Effect.gen(function* () {
      const { folder, target } = yield* setUp
      const first = yield* folder.svc("deploy -m First")
      assert.deepStrictEqual([first.code, first.stderr], [0, ""])
      assert.include(first.stdout, "3 files, 2 uploaded")
      assert.match(first.stdout, /https:\/\/[a-z0-9-]+--dev\.apps\.example\.net\//)
      const manifest = yield* call(target, "GET", "deployments/1")
      assert.deepStrictEqual(
        [0, 1, 2, 3].map((index) => at(manifest.body, "files", index, "path")),
        ["assets/a.js", "assets/copy.js", "index.html", undefined]
      )
      yield* folder.write("dist/index.html", "<p>Hello again")
      const second = yield* folder.svc("deploy dist --json")
      assert.deepInclude(json(second.stdout), {
        version: 2,
        live: true,
        files: 3,
        uploadedFiles: 1
      })
      const third = yield* folder.svc("deploy --no-activate --json")
      assert.deepInclude(json(third.stdout), { version: 3, live: false, uploadedFiles: 0 })
      assert.include((yield* folder.svc("rollback")).stdout, "Version 1 is live")
      assert.include((yield* folder.svc("rollback 3")).stdout, "Version 3 is live")
      const list = yield* folder.svc("deployments --json")
      assert.strictEqual(at(json(list.stdout), "deployments", 0, "live"), true)
      assert.include((yield* folder.svc("deployments")).stdout, "First")
      const unknown = yield* folder.svc("rollback 9")
      assert.deepStrictEqual([unknown.code, unknown.stdout], [2, ""])
      assert.include(unknown.stderr, "There is no version 9")
    })
  )

  it.effect("names files that differ only in case before it uploads anything", () =>
    Effect.gen(function* () {
      const { folder, target } = yield* setUp
      yield* folder.write("dist/Assets.txt", "1")
      yield* folder.write("dist/assets.TXT", "2")
      const refused = yield* folder.svc("deploy")
      assert.strictEqual(refused.code, 2)
      assert.match(refused.stderr, /assets\.TXT: Assets\.txt has the same name, apart from case/)
      assert.strictEqual((yield* call(target, "GET", "deployments/1")).status, 404)
    })
  )

  it.effect("continues where an interrupted deploy stopped", () =>
    Effect.gen(function* () {
      const { folder, target } = yield* setUp
      yield* create(target, { "index.html": "<p>Hello", "assets/a.js": "1" })
      yield* upload(target, "<p>Hello")
      const { code, stdout } = yield* folder.svc("deploy --json")
      assert.strictEqual(code, 0)
      assert.deepInclude(json(stdout), { live: true, files: 3, uploadedFiles: 1, uploadedBytes: 1 })
    })
  )

  it.effect(
    "refuses a folder that is missing, empty or has reserved names, and names the file",
    () =>
      Effect.gen(function* () {
        const { folder } = yield* setUp
        const missing = yield* folder.svc("deploy nowhere")
        assert.deepStrictEqual([missing.code, missing.stdout], [2, ""])
        assert.include(missing.stderr, "svc deploy <folder>")
        assert.include(
          (yield* folder.svc("deploy dist/node_modules/none")).stderr,
          "Failed to read"
        )
        yield* Effect.promise(() => mkdir(join(folder.path, "dist/.svc")))
        yield* folder.write("dist/.svc/config.js", "mine")
        const reserved = yield* folder.svc("deploy")
        assert.strictEqual(reserved.code, 2)
        assert.include(reserved.stderr, ".svc/config.js")
      }),
    { tags: "long" }
  )

  it.effect(
    "explains a feature that is off, and a wrong key",
    () =>
      Effect.gen(function* () {
        const { folder, target } = yield* setUp
        yield* configure(target, {})
        const off = yield* folder.svc("deploy")
        assert.strictEqual(off.code, 3)
        assert.include(off.stderr, "feature_disabled")
        assert.include(off.stderr, "svc feature on hosting")
        const wrong = yield* folder.svc("deploy", {
          env: { SVC_SECRET_KEY: `sk_${"x".repeat(43)}` }
        })
        assert.strictEqual(wrong.code, 3)
      }),
    { tags: "long" }
  )
})
