/** What functions and their callers may not do, on real workerd. */
import { connect } from "node:net"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { functionRuntime } from "#rpc/functions/runtime-limits"
import { FunctionHosts } from "#server/features/functions/host/local"
import { FunctionsRuntime } from "#server/features/functions/runtime"
import { FunctionsWorld, program, withFunctions } from "../../support/functions.ts"
import { eventually } from "../../support/voice-peer.ts"

const live = { timeout: "120 seconds", excludeTestServices: true } as const

const get = Effect.fnUntraced(function* (id: string, path = "", init: RequestInit = {}) {
  const { url } = yield* FunctionsWorld
  return yield* Effect.promise(async () => {
    const response = await fetch(`${url}/${id}/${path}`, init)
    return { status: response.status, text: await response.text(), headers: response.headers }
  })
})

const loadOf = (local: FunctionHosts["Service"]["local"], id: string): number | undefined =>
  typeof local === "string" ? undefined : local.hosts.known(id)?.supervisor.load

/** Reports every header that it gets, and sets some that it may not. */
const mirror = `export default { fetch: (request) =>
  Response.json(Object.fromEntries(request.headers), { headers: {
    "set-cookie": "a=b", "x-svc-outcome": "forged", "x-own": "1", nel: "{}", "report-to": "{}",
    "alt-svc": "h3=:1", "accept-ch": "sec-ch-ua-model", "set-login": "logged-out"
  } })
}`

const outgoing = `
  import { connect } from "cloudflare:sockets"
  import net from "node:net"
  const attempt = async (run) => {
    try { return "reached " + (await run()) } catch (error) {
      return /connection lost/i.test(error.message) ? "tried" : "refused"
    }
  }
  const get = (url) => attempt(async () => (await fetch(url)).status)
  const raw = (host) => attempt(async () => {
    const socket = connect({ hostname: host, port: 1 })
    await socket.opened
    return "socket"
  })
  const node = () => attempt(() => new Promise((resolve, reject) =>
    net.connect(1, "127.0.0.1").on("connect", () => resolve("socket")).on("error", reject)))
  export default { async fetch(request) {
    const { pathname, searchParams } = new URL(request.url)
    const target = searchParams.get("url")
    if (pathname === "/one") return Response.json([await get(target)])
    if (pathname === "/raw") return Response.json([await raw("127.0.0.1"), await node()])
    for (let i = 0; i < 6; i += 1) {
      try { await fetch(target) } catch (error) { if (/subrequests/.test(error.message)) throw error }
    }
    return new Response("all sent")
  } }`

layer(withFunctions({ SVC_FUNCTIONS_STORAGE_MB: "2" }), live)("functions", (it) => {
  it.effect("drops headers that mean something to the service, in both directions", () =>
    Effect.gen(function* () {
      const id = (yield* FunctionsWorld).live(program(mirror))
      const headers = {
        "mf-route-override": "admin",
        "x-svc-kind": "exports",
        "x-svc-url": "http://admin/",
        "svc-player": "pl_forged",
        "cf-connecting-ip": "6.6.6.6",
        cookie: "session=1",
        authorization: "Bearer t"
      }
      const answer = yield* get(id, "", { headers: { ...headers, "x-test-mount": "service" } })
      const seen = JSON.parse(answer.text)
      assert.containsAllKeys(seen, ["authorization", "cf-connecting-ip"])
      assert.strictEqual(seen["cf-connecting-ip"], "192.0.2.1")
      for (const name of [
        "mf-route-override",
        "x-svc-kind",
        "x-svc-call",
        "svc-player",
        "cookie"
      ]) {
        assert.notProperty(seen, name)
      }
      assert.isNull(answer.headers.get("set-cookie"))
      assert.isNull(answer.headers.get("x-svc-outcome"))
      const ofOrigin = ["nel", "report-to", "alt-svc", "accept-ch", "set-login"]
      for (const name of ofOrigin) assert.isNull(answer.headers.get(name), name)
      assert.match(answer.headers.get("content-security-policy") ?? "", /^sandbox /)
      const own = yield* get(id, "", { headers })
      assert.strictEqual(JSON.parse(own.text).cookie, "session=1")
      assert.strictEqual(own.headers.get("set-cookie"), "a=b")
      for (const name of ofOrigin) assert.isNotNull(own.headers.get(name), name)
    })
  )

  it.effect("refuses addresses that are not public, also by name and over raw sockets", () =>
    Effect.gen(function* () {
      const { live: run, url } = yield* FunctionsWorld
      const id = run(program(outgoing, { limits: { subRequests: 50 } }))
      const { port } = new URL(url)
      const hosts = [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
        "2130706433",
        // Networks translate these to 127.0.0.1 and 10.0.0.1.
        "[64:ff9b::7f00:1]",
        "[64:ff9b:1::a00:1]",
        "[2002:7f00:1::]",
        "[::7f00:1]"
      ]
      for (const host of hosts) {
        const target = encodeURIComponent(`http://${host}:${port}/`)
        assert.deepStrictEqual(
          JSON.parse((yield* get(id, `one?url=${target}`)).text),
          ["refused"],
          host
        )
      }
      assert.deepStrictEqual(JSON.parse((yield* get(id, "raw")).text), ["refused", "refused"])
    })
  )

  it.effect("counts a large batch as failed if the function has no handler for it", () =>
    Effect.gen(function* () {
      const id = (yield* FunctionsWorld).live(program("export default {}"))
      const messages = Array.from({ length: 100 }, (_, index) => ({
        id: `${index}`,
        sentAt: 0,
        contentType: "text" as const,
        body: Buffer.alloc(functionRuntime.messageMaxBytes, "x"),
        attempts: 1
      }))
      const failure = yield* Effect.flip((yield* FunctionsRuntime).deliver(id, "JOBS", messages))
      assert.strictEqual(failure._tag, "function_error")
    })
  )

  it.effect("limits the requests that one call sends", () =>
    Effect.gen(function* () {
      const world = yield* FunctionsWorld
      const target = encodeURIComponent("http://127.0.0.1:1/")
      const enough = world.live(program(outgoing, { limits: { subRequests: 6 } }))
      assert.strictEqual((yield* get(enough, `many?url=${target}`)).text, "all sent")
      const five = world.live(program(outgoing, { limits: { subRequests: 5 } }))
      const refused = yield* get(five, `many?url=${target}`)
      assert.strictEqual(refused.status, 503)
      assert.strictEqual(JSON.parse(refused.text).error.code, "function_subrequests_exceeded")
      // Each call has its own count.
      assert.deepStrictEqual(JSON.parse((yield* get(five, `one?url=${target}`)).text), ["refused"])
    })
  )

  it.effect(
    "ends a function call that never ends, also beside 100 calls that wait",
    () =>
      Effect.gen(function* () {
        const world = yield* FunctionsWorld
        const { local } = yield* FunctionHosts
        const source = `export default { async fetch(request) {
        if (request.url.endsWith("spin")) while (true);
        if (request.url.endsWith("wait")) await new Promise((resolve) => setTimeout(resolve, 60_000))
        return new Response("ok")
      } }`
        // Divided by the calls under way, the call would be late before it has used 500 ms.
        const id = world.live(program(source, { limits: { cpuMs: 500 } }))
        yield* get(id)
        const waiting = Array.from({ length: 100 }, () => get(id, "wait"))
        const answers = yield* Effect.all(
          [
            ...waiting,
            Effect.andThen(
              eventually(() => loadOf(local, id) === 100, "the calls wait"),
              get(id, "spin")
            )
          ],
          { concurrency: "unbounded" }
        )
        const codes = new Set(answers.map(({ text }) => JSON.parse(text).error.code))
        assert.deepStrictEqual([...codes], ["function_cpu_exceeded"])
      }),
    { tags: "long" }
  )

  it.effect(
    "stores no more when the storage is full, reads on, and stores again after a delete",
    () =>
      Effect.gen(function* () {
        const world = yield* FunctionsWorld
        const source = `
        import { env as imported } from "cloudflare:workers"
        const attempt = async (run) => {
          try { await run(); return "stored" } catch (error) { return error.message }
        }
        export default { async fetch(request, env) {
          const { pathname } = new URL(request.url)
          if (pathname === "/fill") await env.FILES.put("big", new Uint8Array(3e6))
          if (pathname === "/free") await env.FILES.delete("big")
          if (pathname === "/read") return Response.json([
            (await env.DB.prepare("select count(*) as n from t").first()).n,
            await env.CACHE.get("a"),
            (await env.FILES.get("big"))?.size ?? 0
          ])
          await attempt(() => env.DB.exec("create table if not exists t (a)"))
          return Response.json(await Promise.all([
            attempt(() => env.DB.prepare("insert into t values (1)").run()),
            attempt(() => env.DB.withSession().prepare("insert into t values (1)").run()),
            attempt(() => env.CACHE.put("a", "1")),
            attempt(() => imported.CACHE.put("b", "1")),
            attempt(() => env.FILES.put("a", "1")),
            attempt(() => env.FILES.createMultipartUpload("c"))
          ]))
        } }`
        const id = world.live(
          program(source, {
            bindings: [
              { name: "DB", type: "db" },
              { name: "CACHE", type: "kv" },
              { name: "FILES", type: "files" }
            ]
          })
        )
        const answersOf = (path: string) =>
          Effect.map(get(id, path), ({ text }) => new Set<string>(JSON.parse(text)))
        assert.deepStrictEqual([...(yield* answersOf("fill"))], ["stored"])
        const full = yield* Effect.repeat(answersOf(""), { until: (one) => !one.has("stored") })
        assert.match([...full].join(), /^The storage of this environment is full[^,]*$/)
        const [rows, value, size] = JSON.parse((yield* get(id, "read")).text)
        assert.isAbove(rows, 0)
        assert.deepStrictEqual([value, size], ["1", 3e6])
        yield* get(id, "free")
        const isNoted = () => world.logs.some(({ message }) => /^The storage .* full/.test(message))
        yield* eventually(isNoted, "the logs say that the storage is full")
        const free = yield* Effect.repeat(answersOf(""), { until: (one) => one.has("stored") })
        assert.deepStrictEqual([...free], ["stored"])
      }),
    { tags: "long" }
  )

  it.effect(
    "keeps the memory of a process that answers many calls",
    () =>
      Effect.gen(function* () {
        const world = yield* FunctionsWorld
        const { local } = yield* FunctionHosts
        if (typeof local === "string") return assert.fail(local)
        const source = "export default { fetch: () => new Response('ok') }"
        const id = world.live(program(source, { limits: { cpuMs: 10_000 } }))
        const calls = (count: number) =>
          Effect.forEach(Array.from({ length: count }), () => get(id), {
            concurrency: 16,
            discard: true
          })
        const memory = () => local.hosts.known(id)?.supervisor.memoryBytes ?? 0
        // The heap of the process has its size after 20,000 calls.
        yield* calls(20_000)
        const before = memory()
        yield* calls(14_000)
        assert.isAbove(before, 0)
        assert.isBelow(memory() - before, 20 * 1024 * 1024)
      }),
    { tags: ["long"] }
  )

  it.effect("refuses an upload that is too large for a function, and closes its connection", () =>
    Effect.gen(function* () {
      const world = yield* FunctionsWorld
      const id = world.live(program("export default {}"))
      const { port } = new URL(world.url)
      const received = yield* Effect.promise(
        () =>
          new Promise<string>((resolve) => {
            let text = ""
            const socket = connect(Number(port), "127.0.0.1")
            const length = functionRuntime.bodyMaxBytes + 1
            socket.write(`POST /${id}/ HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n{`)
            socket.on("data", (chunk) => (text += String(chunk)))
            socket.on("error", () => undefined)
            socket.on("close", () => resolve(text))
          })
      )
      assert.match(received, /^HTTP\/1\.1 413 /)
      assert.include(received, "payload_too_large")
    })
  )

  it.effect("shows why a function failed in development alone, and logs it", () =>
    Effect.gen(function* () {
      const world = yield* FunctionsWorld
      const source = `export default { fetch() { console.log("before"); throw new RangeError("no luck") } }`
      const development = world.live(program(source))
      const production = world.live(program(source, { isDevelopment: false }))
      const shown = yield* get(development)
      assert.strictEqual(shown.status, 500)
      assert.deepStrictEqual(JSON.parse(shown.text), {
        error: { code: "function_error", message: "RangeError: no luck" }
      })
      assert.notInclude((yield* get(production)).text, "luck")
      yield* eventually(
        () => world.logs.filter(({ environmentId }) => environmentId === production).length >= 2,
        "the log lines arrive"
      )
      const lines = world.logs.filter(({ environmentId }) => environmentId === production)
      assert.deepStrictEqual(
        lines.map(({ level }) => level),
        ["info", "error"]
      )
      assert.match(lines[1]?.message ?? "", /RangeError: no luck/)
      assert.strictEqual(world.usage.get(production)?.requests ?? 1, 1)
    })
  )

  it.effect("keeps a bounded share of what a function logs", () =>
    Effect.gen(function* () {
      const world = yield* FunctionsWorld
      const id = world.live(
        program(
          `export default { fetch() {
          for (let i = 0; i < 500; i += 1) console.log("x".repeat(100_000))
          return new Response("done")
        } }`,
          { limits: { cpuMs: 30_000 } }
        )
      )
      assert.strictEqual((yield* get(id)).text, "done")
      const linesOf = () => world.logs.filter(({ environmentId }) => environmentId === id)
      yield* eventually(() => linesOf().some(({ level }) => level === "warn"), "lines are dropped")
      for (const { message } of linesOf())
        assert.isAtMost(message.length, functionRuntime.logLineBytes)
    })
  )

  it.effect(
    "refuses modules that cannot start, with the file and the line",
    () =>
      Effect.gen(function* () {
        const runtime = yield* FunctionsRuntime
        const problemOf = (modules: Record<string, string>) =>
          Effect.map(Effect.flip(runtime.validate(program(modules))), (error) =>
            error._tag === "function_invalid" ? { ...error.details, message: error.message } : error
          )
        const broken = yield* problemOf({ "main.js": "\nconst a = ;" })
        assert.deepInclude(broken, { file: "main.js", line: 2 })
        assert.deepInclude(yield* problemOf({ "src/main.js": `import "./no.js"` }), {
          file: "src/main.js",
          line: null
        })
        assert.deepInclude(
          yield* problemOf({ "main.js": `import "./b.js"`, "b.js": `\n\nthrow new Error("top")` }),
          { file: "b.js", line: 3, message: "Error: top" }
        )
        const endless = yield* problemOf({ "main.js": "while (true);" })
        assert.match("message" in endless ? endless.message : "", /2000 ms/)
        const fine = program(`export default {}; export const onStats = () => {}`)
        assert.deepStrictEqual(yield* runtime.validate(fine), { hooks: ["onStats"] })
      }),
    { tags: "long" }
  )

  it.effect("replaces a version after calls under way have ended", () =>
    Effect.gen(function* () {
      const world = yield* FunctionsWorld
      const runtime = yield* FunctionsRuntime
      const version = (n: number) =>
        program(
          `export default { async fetch(request) {
          if (request.url.endsWith("slow")) await new Promise((resolve) => setTimeout(resolve, 300))
          return new Response("version ${n}")
        } }`,
          { version: n }
        )
      const { local } = yield* FunctionHosts
      const id = world.live(version(1))
      yield* get(id)
      const answers = yield* Effect.all(
        [
          get(id, "slow"),
          Effect.gen(function* () {
            yield* eventually(() => loadOf(local, id) === 1, "the first call is under way")
            world.states.set(id, { kind: "live", program: version(2) })
            yield* runtime.changed(id)
            return yield* get(id)
          })
        ],
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(
        answers.map(({ text }) => text),
        ["version 1", "version 2"]
      )
      world.states.set(id, { kind: "absent" })
      yield* runtime.changed(id)
      assert.strictEqual((yield* get(id)).status, 404)
    })
  )
})
