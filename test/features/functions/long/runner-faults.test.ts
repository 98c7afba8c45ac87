/** Functions on runners with a disk each, when one crashes, stands still or loses the database. */
import { mkdir, readFile } from "node:fs/promises"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer, Redacted, Schedule, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { poolLayer } from "#sql/database"
import { TestDatabase } from "#testing/app"
import { at } from "#testing/players"
import { type Runner, startRunner } from "#testing/runners"
import { Bucket } from "../../../support/bucket.ts"
import { deploy, enable } from "../../../support/function-calls.ts"
import { masterKeyOf } from "../../../support/master-keys.ts"
import { DatabaseLive } from "../../../support/service.ts"

const code = `
  const note = async (env, text) => {
    await env.DB.exec("create table if not exists notes (text text)")
    await env.DB.prepare("insert into notes values (?)").bind(text).run()
  }
  export default {
    async fetch(request, env) {
      const { pathname } = new URL(request.url)
      if (pathname !== "/notes") await note(env, pathname)
      const { results } = await env.DB.prepare("select text from notes order by rowid").all()
      return Response.json(results.map(({ text }) => text))
    },
    scheduled: ({ scheduledTime }, env) => note(env, "tick " + scheduledTime)
  }`

const Keys = Schema.fromJsonString(
  Schema.Struct({ development: Schema.Struct({ secretKey: Schema.String }) })
)

const callOn = ({ url }: Runner, label: string, path: string) =>
  Effect.promise(async () => {
    const response = await fetch(`${url}/fn/${label}${path}`)
    return { status: response.status, body: (await response.json()) as unknown }
  })

/** Calls again until the function answers. */
const untilAnswered = (runner: Runner, label: string, path: string) =>
  Effect.map(
    Effect.repeat(callOn(runner, label, path), {
      until: ({ status }) => status === 200,
      schedule: Schedule.spaced(100)
    }),
    ({ body }) => body
  )

const setUp = Effect.fnUntraced(function* (crons: ReadonlyArray<string> = []) {
  const { url: databaseUrl } = yield* TestDatabase
  const { folder, port } = yield* Bucket
  const start = Effect.fnUntraced(function* (name: string) {
    const dataDir = join(folder, name)
    yield* Effect.promise(() => mkdir(dataDir, { recursive: true }))
    const runner = yield* startRunner({
      databaseUrl,
      dataDir,
      env: {
        SVC_MASTER_KEY: masterKeyOf(7),
        SVC_FUNCTIONS_SNAPSHOT_SECONDS: "1",
        SVC_BLOBS_URL: "s3://games/of/mine",
        SVC_S3_ENDPOINT: `http://127.0.0.1:${port}`,
        AWS_ACCESS_KEY_ID: "S3RVER",
        AWS_SECRET_ACCESS_KEY: "S3RVER"
      }
    })
    yield* Effect.addFinalizer((exit) =>
      Effect.sync(() => {
        if (exit._tag === "Failure") process.stderr.write(`${name}:\n${runner.output()}\n`)
      })
    )
    return { runner, dataDir }
  })
  const first = yield* start("one")
  const second = yield* start("two")
  const text = yield* Effect.promise(() => readFile(join(first.dataDir, "dev-keys.json"), "utf8"))
  const { development } = yield* Schema.decodeUnknownEffect(Keys)(text)
  const target = { url: first.runner.url, ...development }
  yield* enable(target)
  const bindings = [{ name: "DB", type: "db" }]
  const url = String(at(yield* deploy(target, { bindings, crons }, code), "url"))
  const label = url.slice(url.lastIndexOf("/") + 1)
  const database = yield* Layer.build(
    poolLayer({ url: Redacted.make(databaseUrl), connections: 1 })
  )
  const sql = Context.get(database, SqlClient.SqlClient)
  const newest = Effect.map(
    sql<{ n: number | null }>`select max(number) as n from function_snapshots`,
    ([row]) => row?.n ?? 0
  )
  /** Writes a note, and waits for a snapshot, which has everything that was written before the note. */
  const write = Effect.fnUntraced(function* (runner: Runner, path: string) {
    const before = yield* newest
    yield* untilAnswered(runner, label, path)
    yield* Effect.repeat(newest, { until: (n) => n > before, schedule: Schedule.spaced(50) })
  })
  return { first: first.runner, second: second.runner, start, sql, label, write }
})

const World = Layer.mergeAll(DatabaseLive, Bucket.layer)
const patientMillis = 300_000
const wrapped = { excludeTestServices: true, timeout: "300 seconds" } as const

layer(World, wrapped)("functions on runners with a disk each", (it) => {
  it.effect(
    "continues functions from the last snapshot after a crash, and with everything after a hand-over",
    () =>
      Effect.gen(function* () {
        const { first, label, second, start, write } = yield* setUp()
        yield* write(second, "/a")
        yield* write(first, "/b")
        yield* first.kill
        const kept = yield* untilAnswered(second, label, "/notes")
        assert.include([`["/a"]`, `["/a","/b"]`], JSON.stringify(kept))
        const more = yield* untilAnswered(second, label, "/c")
        const { runner: third } = yield* start("three")
        yield* second.stop
        assert.deepStrictEqual(yield* untilAnswered(third, label, "/notes"), more)
      }).pipe(Effect.scoped),
    patientMillis
  )
})

layer(World, wrapped)("functions whose runner stands still", (it) => {
  it.effect(
    "runs the functions of a frozen runner on another, which stays the only writer after the thaw",
    () =>
      Effect.gen(function* () {
        const { first, label, second, sql, write } = yield* setUp()
        yield* write(first, "/a")
        yield* write(first, "/b")
        yield* first.signal("SIGSTOP")
        yield* untilAnswered(second, label, "/c")
        yield* first.signal("SIGCONT")
        const before = yield* untilAnswered(first, label, "/notes")
        assert.match(JSON.stringify(before), /^\["\/a",("\/b",)?"\/c"\]$/)
        yield* write(first, "/d")
        const rows = yield* sql<{ epoch: number; held: number }>`
        select s.epoch, h.epoch as held from function_snapshots s
          join function_hosts h using (environment_id)
        order by s.number desc limit 1`
        assert.deepStrictEqual(rows, [{ epoch: 2, held: 2 }])
        const after = yield* untilAnswered(second, label, "/notes")
        assert.deepStrictEqual(after, [...(before as ReadonlyArray<string>), "/d"])
      }).pipe(Effect.scoped),
    patientMillis
  )
})

layer(World, wrapped)("crons of functions on several runners", (it) => {
  it.effect(
    "fires a cron once per tick on all runners together",
    () =>
      Effect.gen(function* () {
        const { first, label, second } = yield* setUp(["* * * * *"])
        yield* callOn(first, label, "/a")
        const notes = yield* Effect.repeat(untilAnswered(second, label, "/notes"), {
          until: (list) => Array.isArray(list) && list.length >= 3,
          schedule: Schedule.spaced(500)
        })
        const ticks = (notes as ReadonlyArray<string>).slice(1)
        assert.strictEqual(new Set(ticks).size, ticks.length, ticks.join(", "))
      }).pipe(Effect.scoped),
    patientMillis
  )
})
