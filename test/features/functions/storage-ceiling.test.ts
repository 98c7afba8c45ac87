/** Storage of functions that get around the refusals of their bindings, on real workerd. */
import { existsSync, readdirSync, statSync, utimesSync } from "node:fs"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { FunctionHosts } from "#server/features/functions/host/local"
import { storedBytes } from "#server/features/functions/host/stored-bytes"
import { FunctionsRuntime } from "#server/features/functions/runtime"
import { FunctionsWorld, program, withFunctions } from "../../support/functions.ts"
import { eventually } from "../../support/voice-peer.ts"

const live = { timeout: "120 seconds", excludeTestServices: true } as const

const mebibyte = 1024 * 1024
/** The limit of these environments is 2 MiB; the ceiling lies 16 MiB above it. */
const ceilingBytes = 18 * mebibyte
/** What a process writes until the next look, on a busy machine. */
const slackBytes = 60 * mebibyte

/** Writes 120 MB, a part with each call, in a way of its choice. */
const hoarder = `
  import { env as top } from "cloudflare:workers"
  const bound = { ...top }
  const text = "x".repeat(3e6)
  const ways = {
    sql: async (env, i) => {
      await env.DB.exec("/*;*/ create table if not exists t (a)")
      await env.DB.prepare("/*;*/ insert into t values (randomblob(2000000))").run()
    },
    kv: (env, i) => bound.CACHE.put("key" + i, text),
    cache: (env, i) => caches.default.put("http://cache/" + i, new Response(text, {
      headers: { "cache-control": "max-age=1000" }
    }))
  }
  export default { async fetch(request, env) {
    const [, way, i] = new URL(request.url).pathname.split("/")
    if (way === "ok") return new Response("ok")
    await ways[way](env, i)
    return new Response("stored")
  } }`

const hoarderProgram = () =>
  program(hoarder, {
    limits: { cpuMs: 30_000 },
    bindings: [
      { name: "DB", type: "db" },
      { name: "CACHE", type: "kv" }
    ]
  })

/** Keeps values of each kind, and begins some that never end. */
const keeper = `
  const stalled = () => {
    const { readable, writable } = new FixedLengthStream(2e6)
    writable.getWriter().write(new Uint8Array(1.9e6))
    return readable
  }
  const ways = {
    keep: async (env) => {
      await env.CACHE.put("key", "key")
      await env.FILES.put("whole", "whole")
      const upload = await env.FILES.createMultipartUpload("parts")
      await upload.complete([await upload.uploadPart(1, "part")])
      return "kept"
    },
    stall: (env) => Promise.all([env.CACHE.put("a", stalled()), env.FILES.put("a", stalled())]),
    read: async (env) => {
      const files = [await env.FILES.get("parts"), await env.FILES.get("whole")]
      const texts = await Promise.all(files.map((file) => file.text()))
      return [await env.CACHE.get("key"), ...texts].join(" ")
    }
  }
  export default { async fetch(request, env) {
    return new Response(await ways[new URL(request.url).pathname.slice(1)](env))
  } }`

const keeperProgram = () =>
  program(keeper, {
    limits: { cpuMs: 30_000 },
    bindings: [
      { name: "CACHE", type: "kv" },
      { name: "FILES", type: "files" }
    ]
  })

/** Files of values of KV and files. */
const valuesIn = (data: string): ReadonlyArray<string> =>
  ["kv/CACHE/blobs", "r2/FILES/blobs"]
    .map((folder) => join(data, folder))
    .filter((folder) => existsSync(folder))
    .flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)))

const call = Effect.fnUntraced(function* (id: string, path: string) {
  const { url } = yield* FunctionsWorld
  return yield* Effect.promise(async () => {
    const response = await fetch(`${url}/${id}/${path}`)
    // The stop of a process at the ceiling cuts the responses that it is writing.
    return { status: response.status, text: await response.text().catch(() => "cut") }
  })
})

const codeOf = (text: string): string | undefined => {
  try {
    return JSON.parse(text).error.code
  } catch {
    return undefined
  }
}

/** Stores in one way until a call fails with the code; returns how often it has stored. */
const storeUntil = Effect.fnUntraced(function* (id: string, way: string, code: string) {
  for (let stored = 0; stored < 100; stored += 1) {
    const { text } = yield* call(id, `${way}/${stored}`)
    if (codeOf(text) === code) return stored
  }
  return assert.fail(`${way} was never refused`)
})

const sizeOf = Effect.fnUntraced(function* (id: string) {
  const { local } = yield* FunctionHosts
  if (typeof local === "string") return assert.fail(local)
  const { directories, programs } = local.context
  const directory = directories.dataOf(id)
  return yield* Effect.promise(() => storedBytes(programs.find, directory, undefined, Infinity))
})

layer(withFunctions({ SVC_FUNCTIONS_STORAGE_MB: "2" }), live)("functions that hoard", (it) => {
  it.effect.each(["sql", "kv"])(
    "stop at the ceiling of the storage, however they write: %s",
    (way) =>
      Effect.gen(function* () {
        const world = yield* FunctionsWorld
        const id = world.live(hoarderProgram())
        yield* storeUntil(id, way, "functions_suspended")
        assert.isBelow(yield* sizeOf(id), ceilingBytes + slackBytes)
        const refused = yield* call(id, "ok")
        assert.strictEqual(refused.status, 503)
        assert.match(JSON.parse(refused.text).error.message, /stores \d+ MiB .* the limit is 2 MiB/)
        const isNoted = () =>
          world.logs.some((line) => line.environmentId === id && /are stopped/.test(line.message))
        yield* eventually(isNoted, "the logs say that the functions are stopped")
      })
  )

  it.effect("get the space of values back whose writes were cut off, and lose no other", () =>
    Effect.gen(function* () {
      const id = (yield* FunctionsWorld).live(keeperProgram())
      const runtime = yield* FunctionsRuntime
      const { local } = yield* FunctionHosts
      if (typeof local === "string") return assert.fail(local)
      assert.strictEqual((yield* call(id, "keep")).text, "kept")
      const data = local.context.directories.dataOf(id)
      const before = valuesIn(data)
      assert.lengthOf(before, 3)
      const cut = yield* Effect.forkChild(call(id, "stall"))
      const added = () => valuesIn(data).filter((file) => !before.includes(file))
      yield* eventually(
        () =>
          added().length === 2 && added().every((file) => statSync(file).size >= 1.5 * mebibyte),
        "both writes have begun"
      )
      process.kill(local.hosts.of(id).supervisor.process?.pid ?? 0, "SIGKILL")
      yield* Fiber.join(cut)
      // What is young may still get its key.
      for (const file of valuesIn(data)) utimesSync(file, 0, 0)
      const reclaimed = Effect.gen(function* () {
        yield* runtime.deleteEntries(id, { type: "kv", binding: "CACHE" }, { name: "none" })
        return added().length
      })
      yield* Effect.repeat(reclaimed, { until: (left) => left === 0 })
      assert.sameMembers([...valuesIn(data)], [...before])
      assert.strictEqual((yield* call(id, "read")).text, "key part whole")
    })
  )

  it.effect(
    "run again after their cache is emptied, which costs no data",
    () =>
      Effect.gen(function* () {
        const id = (yield* FunctionsWorld).live(hoarderProgram())
        yield* storeUntil(id, "cache", "functions_suspended")
        const runs = Effect.map(call(id, "ok"), ({ text }) => text === "ok")
        yield* Effect.repeat(runs, { until: (isRunning) => isRunning })
        assert.isBelow(yield* sizeOf(id), 2 * mebibyte)
      }),
    { tags: "long" }
  )

  it.effect(
    "run again after the developer has deleted rows, also after a restart",
    () =>
      Effect.gen(function* () {
        const id = (yield* FunctionsWorld).live(hoarderProgram())
        const runtime = yield* FunctionsRuntime
        const { local } = yield* FunctionHosts
        if (typeof local === "string") return assert.fail(local)
        yield* storeUntil(id, "sql", "functions_suspended")
        yield* Effect.promise(() => local.hosts.close(id, 0))
        assert.strictEqual(codeOf((yield* call(id, "ok")).text), "functions_suspended")
        const { rows } = yield* runtime.query(id, "DB", "select count(*) from t", [])
        assert.isAbove(Number(rows[0]?.[0]), 5)
        yield* runtime.query(id, "DB", "delete from t", [])
        const runs = Effect.map(call(id, "ok"), ({ text }) => text === "ok")
        yield* Effect.repeat(runs, { until: (isRunning) => isRunning })
        const kept = yield* runtime.query(id, "DB", "select count(*) from t", [])
        assert.deepStrictEqual(kept.rows, [[0]])
      }),
    { tags: "long" }
  )
})

/** More than the disk of any test machine has. */
const reserve = { SVC_FUNCTIONS_DISK_RESERVE_MB: `${1024 * 1024}` }

layer(withFunctions(reserve), live)("functions on a disk that is nearly full", (it) => {
  it.effect("store no more, and read on", () =>
    Effect.gen(function* () {
      const world = yield* FunctionsWorld
      const source = `export default { async fetch(request, env) {
        try { await env.CACHE.put("a", "1"); return new Response("stored") }
        catch (error) { return new Response(error.message + " " + (await env.CACHE.get("a"))) }
      } }`
      const id = world.live(program(source, { bindings: [{ name: "CACHE", type: "kv" }] }))
      const { text } = yield* call(id, "")
      assert.match(text, /^The storage of this environment is full.* null$/)
    })
  )
})
