/** Calls of functions on real workerd: bindings, streams, sockets, limits and what a caller may not do. */
import { EventEmitter, once } from "node:events"
import { chmodSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { WebSocket } from "ws"
import { FunctionsRuntime } from "#server/features/functions/runtime"
import { FunctionHosts } from "#server/features/functions/host/local"
import { FunctionsWorld, program, withFunctions } from "../../support/functions.ts"
import { eventually } from "../../support/voice-peer.ts"

const live = { timeout: "120 seconds", excludeTestServices: true } as const

interface Answer {
  readonly status: number
  readonly text: string
  readonly headers: Headers
}

const get = Effect.fnUntraced(function* (id: string, path = "", init: RequestInit = {}) {
  const { url } = yield* FunctionsWorld
  return yield* Effect.promise(async (): Promise<Answer> => {
    const response = await fetch(`${url}/${id}/${path}`, init)
    return { status: response.status, text: await response.text(), headers: response.headers }
  })
})

const codeOf = ({ text }: Answer): string => JSON.parse(text).error.code

/** The process of an environment on this machine. */
const pidOf = Effect.fnUntraced(function* (id: string) {
  const { local } = yield* FunctionHosts
  assert.isObject(local)
  return typeof local === "object" ? (local.hosts.known(id)?.supervisor.process?.pid ?? 0) : 0
})

/** Waits until the logs of an environment say why its process was ended. */
const ended = Effect.fnUntraced(function* (id: string, why: string) {
  const { logs } = yield* FunctionsWorld
  const isLogged = () =>
    logs.some(({ environmentId, message }) => environmentId === id && message.includes(why))
  yield* eventually(isLogged, `the logs say "${why}"`)
})

const bound = program(
  `
  import { DurableObject } from "cloudflare:workers"
  export class Counter extends DurableObject {
    async next() {
      const n = ((await this.ctx.storage.get("n")) ?? 0) + 1
      await this.ctx.storage.put("n", n)
      return n
    }
  }
  export default {
    async fetch(request, env) {
      await env.DB.prepare("create table if not exists t (a)").run()
      await env.DB.prepare("insert into t values (?)").bind(7).run()
      await env.CACHE.put("k", "v")
      await env.FILES.put("f", "contents")
      await env.JOBS.send({ job: 1 })
      const counter = env.COUNTER.get(env.COUNTER.idFromName("a"))
      return Response.json({
        rows: (await env.DB.prepare("select a from t").all()).results,
        kv: await env.CACHE.get("k"),
        file: await (await env.FILES.get("f")).text(),
        counts: [await counter.next(), await counter.next()],
        secret: env.API_KEY,
        greeting: env.GREETING,
        player: request.headers.get("svc-player"),
        svc: await env.svc.saves.get("pl_1", "slot 1"),
        url: request.url
      })
    },
    async scheduled(controller, env) {
      await env.CACHE.put("cron", controller.cron + " " + controller.scheduledTime)
    },
    async queue(batch) {
      for (const message of batch.messages) {
        if (message.body.fail) message.retry({ delaySeconds: 5 })
        else message.ack()
      }
    }
  }
  export async function onStats(event, env) {
    await env.CACHE.put("stats", JSON.stringify(event))
  }`,
  {
    bindings: [
      { name: "DB", type: "db" },
      { name: "CACHE", type: "kv" },
      { name: "FILES", type: "files" },
      { name: "JOBS", type: "queue" },
      { name: "API_KEY", type: "secret" },
      { name: "COUNTER", type: "durableObject", class: "Counter" }
    ],
    secrets: { API_KEY: "s3cret", OTHER: "never" }
  }
)

layer(withFunctions(), live)("functions", (it) => {
  it.effect("gives a function all its bindings, and the player that the service has verified", () =>
    Effect.gen(function* () {
      const world = yield* FunctionsWorld
      const id = world.live(bound)
      const { status, text } = yield* get(id, "a/b?c=d", { headers: { "x-test-player": "pl_1" } })
      assert.strictEqual(status, 200, text)
      assert.deepStrictEqual(JSON.parse(text), {
        rows: [{ a: 7 }],
        kv: "v",
        file: "contents",
        counts: [1, 2],
        secret: "s3cret",
        greeting: "hello",
        player: "pl_1",
        svc: { path: "/v1/admin/players/pl_1/saves/slot%201" },
        url: "https://game.example/a/b?c=d"
      })
      const message = world.messages.find(({ environmentId }) => environmentId === id)
      assert.strictEqual(message?.queue, "JOBS")
      assert.strictEqual(Buffer.from(message?.body ?? "").toString(), `{"job":1}`)
      const { databases, files, kv, queues } = yield* (yield* FunctionsRuntime).resources(id)
      assert.deepStrictEqual(queues, [{ binding: "JOBS", messages: 1 }])
      for (const [resource] of [databases, files, kv]) assert.isAbove(resource?.sizeBytes ?? 0, 0)
    })
  )

  it.effect(
    "calls a function for crons, queues and hooks, and queries and migrates its database",
    () =>
      Effect.gen(function* () {
        const runtime = yield* FunctionsRuntime
        const id = (yield* FunctionsWorld).live(bound)
        yield* runtime.scheduled(id, "*/5 * * * *", 1000)
        yield* runtime.hook(id, "onStats", { score: 3 })
        yield* runtime.hook(id, "onRoomClosed", {})
        const messageOf = (name: string, body: unknown) => ({
          id: name,
          sentAt: 0,
          contentType: "json" as const,
          body: Buffer.from(JSON.stringify(body)),
          attempts: 1
        })
        const outcome = yield* runtime.deliver(id, "JOBS", [
          messageOf("good", {}),
          messageOf("bad", { fail: true })
        ])
        assert.deepStrictEqual(outcome, { retry: [{ id: "bad", delaySeconds: 5 }] })
        const migrations = [
          {
            name: "1",
            sql: "create table m (a integer primary key, b); insert into m values (1, 'x')"
          },
          { name: "2", sql: "insert into m values (2, 'y'); creat table broken" },
          { name: "3", sql: "select 1" }
        ]
        const first = yield* runtime.migrate(id, "DB", migrations)
        assert.deepStrictEqual(first.applied, ["1"])
        assert.strictEqual(first.failed?.name, "2")
        assert.deepStrictEqual((yield* runtime.migrate(id, "DB", migrations)).skipped, ["1"])
        assert.deepStrictEqual(yield* runtime.query(id, "DB", "select a, b, a from m", []), {
          columns: ["a", "b", "a"],
          rows: [[1, "x", 1]],
          rowsAffected: 0,
          lastInsertId: null
        })
        const inserted = yield* runtime.query(id, "DB", "insert into m (b) values (?)", ["z"])
        assert.strictEqual(inserted.rowsAffected, 1)
        assert.strictEqual(inserted.lastInsertId, 2)
        const refused = yield* Effect.flip(runtime.query(id, "DB", "attach '/tmp/x' as x", []))
        assert.strictEqual(refused._tag, "sql_error")
        const longest = `select '${"a".repeat(99_991)}'`
        assert.lengthOf((yield* runtime.query(id, "DB", longest, [])).rows, 1)
        const none = yield* Effect.flip(runtime.query(id, "CACHE", "select 1", []))
        assert.strictEqual(none._tag, "not_found")
      })
  )

  it.effect("ends a function that exceeds its CPU time, spares another, and serves it again", () =>
    Effect.gen(function* () {
      const world = yield* FunctionsWorld
      const hog = world.live(
        program(
          `export default { async fetch(request) {
            const { pathname } = new URL(request.url)
            if (pathname === "/spin") while (true);
            return new Response("ok")
          } }`,
          { limits: { cpuMs: 200 } }
        )
      )
      const other = world.live(program(`export default { fetch: () => new Response("other") }`))
      yield* get(hog)
      yield* get(other)
      const before = yield* pidOf(hog)
      const [spun, neighbour] = yield* Effect.all([get(hog, "spin"), get(other)], {
        concurrency: "unbounded"
      })
      assert.strictEqual(spun.status, 503)
      assert.strictEqual(codeOf(spun), "function_cpu_exceeded")
      assert.strictEqual(neighbour.text, "other")
      // Calls that come while the process starts wait for it.
      const after = yield* Effect.all([get(hog), get(hog), get(hog)], { concurrency: "unbounded" })
      assert.deepStrictEqual(
        after.map(({ text }) => text),
        ["ok", "ok", "ok"]
      )
      assert.notStrictEqual(yield* pidOf(hog), before)
      yield* ended(hog, "used more CPU time than limits.cpuMs")
    })
  )

  it.effect("ends a function for its memory with function_cpu_exceeded, and serves it again", () =>
    Effect.gen(function* () {
      const world = yield* FunctionsWorld
      const hog = world.live(
        program(
          `export default { async fetch(request) {
            if (!request.url.endsWith("/eat")) return new Response("ok")
            const eaten = []
            while (true) {
              eaten.push(new Uint8Array(8e6).fill(1))
              await new Promise((resolve) => setTimeout(resolve, 1))
            }
          } }`,
          // Far more CPU time than it takes to fill the memory.
          { limits: { cpuMs: 30_000 } }
        )
      )
      const eaten = yield* get(hog, "eat")
      assert.strictEqual(eaten.status, 503)
      assert.strictEqual(codeOf(eaten), "function_cpu_exceeded")
      assert.include(eaten.text, "more CPU time or memory than its limit")
      assert.strictEqual((yield* get(hog)).text, "ok")
      yield* ended(hog, "used more memory than an environment may")
    })
  )

  it.effect("serves again after the process was killed", () =>
    Effect.gen(function* () {
      const id = (yield* FunctionsWorld).live(
        program(`export default { fetch: () => new Response("ok") }`)
      )
      yield* get(id)
      const pid = yield* pidOf(id)
      process.kill(pid, "SIGKILL")
      yield* eventually(() => !isAlive(pid), "the process ends")
      assert.strictEqual((yield* get(id)).text, "ok")
    })
  )

  it.effect("serves what needs no data while the data cannot be opened", () =>
    Effect.gen(function* () {
      const world = yield* FunctionsWorld
      const { local } = yield* FunctionHosts
      if (typeof local === "string") return assert.fail(local)
      const source = `export default { async fetch({ url }, { DB }) {
        if (url.endsWith("rows")) await DB.prepare("select 1").first()
        return new Response("ok")
      } }`
      const id = world.live(program(source, { bindings: [{ name: "DB", type: "db" }] }))
      assert.strictEqual((yield* get(id, "rows")).text, "ok")
      yield* Effect.promise(() => local.hosts.close(id, 0))
      const directory = join(
        local.context.directories.dataOf(id),
        "d1",
        "miniflare-D1DatabaseObject"
      )
      const files = readdirSync(directory).filter((name) => /^[0-9a-f]{64}/.test(name))
      const allow = (mode: number) =>
        files.forEach((name) => chmodSync(join(directory, name), mode))
      assert.isNotEmpty(files)
      allow(0o000)
      assert.strictEqual((yield* get(id)).text, "ok")
      assert.strictEqual(codeOf(yield* get(id, "rows")), "function_error")
      local.hosts.sweep()
      const lines = world.logs.filter(({ environmentId }) => environmentId === id)
      assert.isTrue(
        lines.some(({ message }) => message.startsWith("Stored data cannot be opened: ")),
        JSON.stringify(lines)
      )
      yield* Effect.promise(() => local.hosts.close(id, 0))
      allow(0o600)
      assert.strictEqual((yield* get(id, "rows")).text, "ok")
    })
  )

  it.effect(
    "says that the disk is full, to the caller and in the logs, and runs when it is not",
    () =>
      Effect.gen(function* () {
        const world = yield* FunctionsWorld
        const { local } = yield* FunctionHosts
        const runtime = yield* FunctionsRuntime
        if (typeof local === "string") return assert.fail(local)
        const { directories } = local.context
        const full = () => Promise.reject(Object.assign(new Error("no space"), { code: "ENOSPC" }))
        const own = { of: directories.of, tryToWrite: directories.tryToWrite }
        const id = world.live(program("export default { fetch: () => new Response('ok') }"))
        yield* runtime.checkDisk
        Object.assign(directories, { of: full, tryToWrite: full })
        for (let i = 0; i < 3; i++) {
          const { status, text } = yield* get(id)
          assert.strictEqual(status, 503)
          assert.match(text, /"unavailable".*the disk is full/)
        }
        const refused = yield* Effect.flip(runtime.checkDisk)
        assert.include(refused.message, "the disk is full")
        local.hosts.sweep()
        const lines = world.logs.filter(({ environmentId }) => environmentId === id)
        assert.lengthOf(lines, 1)
        assert.deepInclude(lines[0], { level: "error", version: 1 })
        assert.include(lines[0]?.message, "free space")
        Object.assign(directories, own)
        yield* runtime.checkDisk
        assert.strictEqual((yield* get(id)).text, "ok")
      })
  )

  it.effect("closes an idle connection before the process does", () =>
    Effect.gen(function* () {
      const world = yield* FunctionsWorld
      const { local } = yield* FunctionHosts
      assert.isObject(local)
      const id = world.live(program("export default { fetch: () => new Response('ok') }"))
      yield* get(id)
      const process =
        typeof local === "object" ? local.hosts.known(id)?.supervisor.process : undefined
      const [idle] = Object.values(process?.agent.freeSockets ?? {}).flatMap((some) => some ?? [])
      assert.isDefined(idle)
      const socket = idle ?? new EventEmitter()
      const ended = Effect.promise(() =>
        Promise.race(["timeout", "close"].map((event) => once(socket, event).then(() => event)))
      )
      assert.strictEqual(yield* ended, "timeout", "the process has closed it")
    })
  )

  it.effect("streams bodies in both directions", () =>
    Effect.gen(function* () {
      const world = yield* FunctionsWorld
      const id = world.live(
        program(`export default { fetch: (request) => new Response(request.body) }`)
      )
      const answer = yield* Effect.promise(async () => {
        const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
        const writer = writable.getWriter()
        void writer.write(Buffer.from("first"))
        const response = await fetch(`${world.url}/${id}/`, {
          method: "POST",
          body: readable,
          duplex: "half"
        } as RequestInit)
        const reader = response.body!.getReader()
        const first = Buffer.from((await reader.read()).value!).toString()
        void writer.write(Buffer.alloc(3_000_000)).then(() => writer.close())
        let bytes = 0
        for (let part = await reader.read(); !part.done; part = await reader.read()) {
          bytes += part.value.length
        }
        return { first, bytes }
      })
      assert.deepStrictEqual(answer, { first: "first", bytes: 3_000_000 })
    })
  )

  it.effect("holds WebSockets, which end with their process", () =>
    Effect.gen(function* () {
      const world = yield* FunctionsWorld
      const id = world.live(
        program(`export default { fetch(request) {
          const { 0: client, 1: server } = new WebSocketPair()
          server.accept()
          server.addEventListener("message", ({ data }) => server.send("echo " + data))
          return new Response(null, { status: 101, webSocket: client })
        } }`)
      )
      const heard: Array<string> = []
      let closed = false
      const socket = new WebSocket(`${world.url.replace("http", "ws")}/${id}/`)
      socket.on("open", () => socket.send("a"))
      socket.on("message", (data) => heard.push(String(data)))
      socket.on("close", () => (closed = true)).on("error", () => undefined)
      yield* eventually(() => heard.length > 0, "the echo arrives")
      assert.deepStrictEqual(heard, ["echo a"])
      process.kill(yield* pidOf(id), "SIGKILL")
      yield* eventually(() => closed, "the socket closes")
    })
  )
})

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
