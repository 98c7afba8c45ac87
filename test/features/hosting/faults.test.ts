/** Hosting under faults: cut uploads, damaged and unwritable files, collection meanwhile, two runners. */
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { request as httpRequest } from "node:http"
import { dirname, join } from "node:path"
import { brotliCompressSync, brotliDecompressSync } from "node:zlib"
import { assert, layer } from "@effect/vitest"
import { DateTime, Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { makeCollect } from "#server/features/hosting/garbage-collection"
import { at, request } from "#testing/players"
import { call, create, deploy, sha256, upload, visit } from "../../support/hosting.ts"
import { hostingNode, makeHostedProject } from "../../support/hosting-node.ts"
import { addressOfNode, nodeWith } from "../../support/http-stack.ts"
import { codeOf } from "../../support/moderation-calls.ts"

const { dataDir, env, Node } = hostingNode("hosting-faults")

const setUp = Effect.gen(function* () {
  const project = yield* makeHostedProject({ emailLogin: true })
  return { ...project, folder: join(dataDir, "blobs", project.target.environmentId) }
})

/** Sends the first half of an upload, and closes the connection when the service has it. */
const uploadHalf = (url: string, secretKey: string, content: string) =>
  Effect.promise(async () => {
    const sent = httpRequest(`${url}/v1/blobs/${sha256(content)}`, {
      method: "PUT",
      headers: { "x-svc-key": secretKey, "content-length": content.length },
      agent: false
    })
    sent.on("error", () => {})
    sent.write(content.slice(0, content.length / 2))
    const temporary = join(dataDir, "blobs", "temporary")
    const received = async (): Promise<boolean> => {
      const names = await readdir(temporary).catch(() => [])
      const sizes = await Promise.all(names.map((name) => readFile(join(temporary, name))))
      return sizes.some(({ length }) => length > 0)
    }
    while (!(await received())) await new Promise(setImmediate)
    await new Promise((resolve) => {
      sent.on("close", resolve).destroy()
    })
  })

/** Holds a lock until both effects wait for the database, the first before the second. */
const inTurn = Effect.fnUntraced(function* <A, B, E>(
  lock: Effect.Effect<unknown, E>,
  first: Effect.Effect<A>,
  second: Effect.Effect<B>
) {
  const sql = yield* SqlClient.SqlClient
  // Outside of the transaction of the lock.
  const fork = Effect.runForkWith(yield* Effect.context<never>())
  const awaitWaiting = (count: number) =>
    Effect.repeat(
      sql`
        select pid from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`,
      { until: ({ length }) => length === count }
    )
  const [one, two] = yield* sql.withTransaction(
    Effect.gen(function* () {
      yield* lock
      const earlier = fork(first)
      yield* awaitWaiting(1)
      const later = fork(second)
      yield* awaitWaiting(2)
      return [earlier, later] as const
    })
  )
  return [yield* Fiber.join(one), yield* Fiber.join(two)] as const
})

layer(Node, { timeout: "60 seconds" })("hosting under faults", (it) => {
  it.effect("asks again for a file whose upload was cut", () =>
    Effect.gen(function* () {
      const { open, target, url } = yield* setUp
      yield* deploy(target, { "index.html": "one" })
      const files = { "index.html": "two", "big.bin": "x".repeat(500_000) }
      const created = yield* create(target, files)
      yield* upload(target, "two")
      yield* uploadHalf(url, target.secretKey, files["big.bin"])
      const early = yield* call(target, "POST", "deployments/2/finalize", { activate: true })
      assert.strictEqual(codeOf(early), "blobs_missing")
      assert.strictEqual((yield* open("/")).body.toString(), "one")
      const again = yield* create(target, files)
      assert.deepStrictEqual(at(again.body, "missing"), [sha256(files["big.bin"])])
      assert.lengthOf(Object.keys(Object(at(created.body, "missing"))), 2)
      yield* deploy(target, files)
      assert.strictEqual((yield* open("/big.bin")).body.length, 500_000)
      const left = Effect.promise(() => readdir(join(dataDir, "blobs", "temporary")))
      yield* Effect.repeat(left, { until: (names) => names.length === 0 })
    })
  )

  it.effect("serves no damaged file, and asks for it again", () =>
    Effect.gen(function* () {
      const { folder, open, target } = yield* setUp
      const files = { "index.html": "whole", "lost.html": "lost" }
      yield* deploy(target, files)
      yield* Effect.promise(() => writeFile(join(folder, sha256("whole")), "wrong"))
      yield* Effect.promise(() => rm(join(folder, sha256("lost"))))
      for (const path of ["/", "/lost"]) {
        const page = yield* open(path)
        assert.isAtLeast(page.status, 500, path)
        assert.notInclude(page.body.toString(), "wrong")
      }
      const again = yield* create(target, files)
      assert.sameMembers(Object.values(Object(at(again.body, "missing"))), [
        sha256("whole"),
        sha256("lost")
      ])
      yield* deploy(target, files)
      assert.strictEqual((yield* open("/")).body.toString(), "whole")
      assert.strictEqual((yield* open("/lost")).body.toString(), "lost")
    })
  )

  it.effect("serves no damaged form of a file, and makes it again", () =>
    Effect.gen(function* () {
      const { folder, host, target, url } = yield* setUp
      const script = "let a = 1;".repeat(1000)
      const files = { "index.html": "home", "app.js": script }
      yield* deploy(target, files)
      const form = join(folder, `${sha256(script)}.br`)
      const whole = yield* Effect.promise(() => readFile(form))
      const openForm = visit(url, host, "/app.js", { "accept-encoding": "br" })
      // Another text, a cut one, and bytes that are no Brotli at all.
      const wrong = [brotliCompressSync("another"), whole.subarray(0, -2), Buffer.alloc(90, 255)]
      for (const [round, bytes] of wrong.entries()) {
        yield* Effect.promise(() => writeFile(form, bytes))
        assert.isAtLeast((yield* openForm).status, 500, `round ${round}`)
        const again = yield* create(target, files)
        assert.deepStrictEqual(at(again.body, "missing"), [sha256(script)])
        yield* deploy(target, files)
      }
      const mended = yield* openForm
      assert.strictEqual(mended.headers["content-encoding"], "br")
      assert.strictEqual(brotliDecompressSync(mended.body).toString(), script)
    })
  )

  it.effect("answers 503 while files cannot be written, and goes on afterwards", () =>
    Effect.gen(function* () {
      const { folder, target } = yield* setUp
      yield* create(target, { "index.html": "one" })
      // A file in the place of the folder.
      yield* Effect.promise(() => mkdir(dirname(folder), { recursive: true }))
      yield* Effect.promise(() => writeFile(folder, ""))
      const refused = yield* upload(target, "one")
      assert.deepStrictEqual([refused.status, codeOf(refused)], [503, "unavailable"])
      const early = yield* call(target, "POST", "deployments/1/finalize", { activate: true })
      assert.strictEqual(codeOf(early), "blobs_missing")
      yield* Effect.promise(() => rm(folder))
      assert.strictEqual((yield* upload(target, "one")).status, 200)
    })
  )

  it.effect("loses nothing of a deployment that is finalized during a collection", () =>
    Effect.gen(function* () {
      const { open, target } = yield* setUp
      const { environmentId } = target
      const sql = yield* SqlClient.SqlClient
      const collect = yield* makeCollect
      const now = yield* DateTime.now
      const dayAgo = DateTime.toDateUtc(DateTime.subtract(now, { hours: 25 }))
      for (let round = 1; round <= 6; round++) {
        const old = `old ${round}`
        // A file that no deployment names, and that the collection is about to remove.
        yield* create(target, { "old.html": old })
        yield* upload(target, old)
        yield* collect(DateTime.add(now, { hours: 25 }))
        const blob = sql`environment_id = ${environmentId} and sha256 = ${sha256(old)}`
        yield* sql`update blobs set orphaned_at = ${dayAgo} where ${blob}`
        const lock = sql`select from blobs where ${blob} for update`
        const redeploy = deploy(target, { "index.html": `new ${round}`, "old.html": old })
        if (round % 2 === 0) yield* inTurn(lock, redeploy, collect(now))
        else yield* inTurn(lock, collect(now), redeploy)
        assert.strictEqual((yield* open("/")).body.toString(), `new ${round}`)
        assert.strictEqual((yield* open("/old")).body.toString(), old)
      }
    })
  )

  it.effect("answers 404 to the finalization of a deployment while a collection removes it", () =>
    Effect.gen(function* () {
      const { open, target } = yield* setUp
      const sql = yield* SqlClient.SqlClient
      const collect = yield* makeCollect
      const now = yield* DateTime.now
      yield* deploy(target, { "index.html": "before" })
      yield* create(target, { "index.html": "late" })
      yield* upload(target, "late")
      const lock = sql`
        select from deployment_files
        where environment_id = ${target.environmentId} and sha256 = ${sha256("late")} for update`
      const [, { status }] = yield* inTurn(
        lock,
        collect(DateTime.add(now, { hours: 25 })),
        call(target, "POST", "deployments/2/finalize", { activate: true })
      )
      assert.strictEqual(status, 404)
      assert.strictEqual((yield* open("/")).body.toString(), "before")
    })
  )

  it.effect("shows an activation on another runner once it is answered", () =>
    Effect.gen(function* () {
      const { host, target } = yield* setUp
      const memoMap = yield* Layer.makeMemoMap
      const node = yield* Layer.buildWithMemoMap(nodeWith(env), memoMap, yield* Effect.scope)
      const other = yield* Effect.provideContext(addressOfNode, node)
      const seen = Effect.map(visit(other, host, "/"), ({ body }) => body.toString())
      const same = Effect.map(
        visit(other, host, "/", { "if-none-match": `"${sha256("one")}"` }),
        ({ body, status }) => (status === 304 ? "unchanged" : body.toString())
      )
      yield* deploy(target, { "index.html": "one" })
      assert.deepStrictEqual([yield* seen, yield* same], ["one", "unchanged"])
      yield* deploy(target, { "index.html": "two" })
      assert.deepStrictEqual([yield* seen, yield* same], ["two", "two"])
      yield* call(target, "POST", "deployments/1/activate")
      assert.deepStrictEqual([yield* seen, yield* same], ["one", "unchanged"])
    })
  )

  it.effect("shows one of two versions on all runners when both are activated at once", () =>
    Effect.gen(function* () {
      const { host, target, url } = yield* setUp
      const memoMap = yield* Layer.makeMemoMap
      const node = yield* Layer.buildWithMemoMap(nodeWith(env), memoMap, yield* Effect.scope)
      const runners = [url, yield* Effect.provideContext(addressOfNode, node)]
      yield* deploy(target, { "index.html": "1" })
      yield* deploy(target, { "index.html": "2" })
      for (let round = 0; round < 5; round++) {
        const answers = yield* Effect.forEach(
          runners,
          (runner, index) =>
            call({ ...target, url: runner }, "POST", `deployments/${index + 1}/activate`),
          { concurrency: 2 }
        )
        assert.deepStrictEqual(
          answers.map(({ status }) => status),
          [200, 200]
        )
        const live = String(at((yield* call(target, "GET", "hosting")).body, "live", "version"))
        for (const runner of runners) {
          assert.strictEqual((yield* visit(runner, host, "/")).body.toString(), live, runner)
        }
      }
    })
  )

  it.effect("lets links in mails lead to the app", () =>
    Effect.gen(function* () {
      const { host, target, url } = yield* setUp
      const statusOf = (redirectUrl: string) =>
        Effect.map(
          request(`${url}/v1/auth/password/forgot`, {
            method: "POST",
            headers: { "x-svc-key": target.publishableKey },
            body: { email: "ada@example.com", redirectUrl }
          }),
          ({ status }) => status
        )
      assert.isBelow(yield* statusOf(`https://${host}/reset`), 300)
      assert.isBelow(yield* statusOf(`https://v3--${host}/reset?a=b`), 300)
      for (const wrong of [
        `https://x${host}/`,
        `https://${host}.evil.example/`,
        `ftp://${host}/`
      ]) {
        assert.strictEqual(yield* statusOf(wrong), 400, wrong)
      }
    })
  )
})
