/**
 * Calls that a function or its process ends in a way that no answer is for: their callers learn that the
 * function has failed, its own log says why, and the service's log has no line of it.
 */
import { once } from "node:events"
import { connect, createServer, type Socket } from "node:net"
import { text } from "node:stream/consumers"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { WebSocket } from "ws"
import { CallFailures } from "#server/features/functions/host/call-end"
import { FunctionHosts } from "#server/features/functions/host/local"
import { FunctionsRuntime } from "#server/features/functions/runtime"
import { FunctionsWorld, program, withFunctions } from "../../support/functions.ts"
import { eventually } from "../../support/voice-peer.ts"

const live = { timeout: "120 seconds", excludeTestServices: true } as const

const code = `
  let calls = 0
  const stream = () => new ReadableStream({
    start(out) {
      out.enqueue(new TextEncoder().encode("a"))
      out.close()
    }
  })
  const answers = {
    calls: () => new Response(String(calls)),
    refused: () => new Response("own", { headers: { "x-svc-outcome": "refused", "mf-own": "1" } }),
    failed: () => new Response("own", { status: 201, headers: { "X-Svc-Outcome": "failed" } }),
    length: () => new Response(stream(), { headers: { "content-length": "x" } }),
    both: () => new Response(stream(), { headers: { "content-length": "1", "transfer-encoding": "chunked" } }),
    nothing: () => undefined,
    number: () => 7,
    never: () => new Promise(() => {}),
    async used() {
      const response = new Response("first")
      await response.text()
      return response
    },
    copied: async () => Response.redirect("https://game.example/"),
    headers: () => new Response("a", { headers: { "x-long": "a".repeat(20_000) } }),
    slow: () => new Promise((resolve) => setTimeout(() => resolve(new Response("slow")), 20_000))
  }
  export const onStats = () => new Promise(() => {})
  export default { scheduled: () => new Promise(() => {}), async fetch(request) {
    const name = new URL(request.url).pathname.slice(1)
    if (name === "counted") calls += 1
    return (answers[name] ?? answers.calls)()
  } }`

const codeOf = (text: string): string => JSON.parse(text).error.code

/** A running function. The server before it throws on a fault of the service, and so fails the test. */
const setUp = Effect.gen(function* () {
  const { live: run, logs, url } = yield* FunctionsWorld
  const { local } = yield* FunctionHosts
  if (typeof local === "string") return yield* Effect.die(new Error(local))
  const id = run(program(code))
  const get = async (path: string, init?: RequestInit) => {
    const answer = await fetch(`${url}/${id}/${path}`, init)
    const { headers, status } = answer
    return { status, headers, text: await answer.text() }
  }
  yield* Effect.promise(() => get("calls"))
  const { supervisor } = local.hosts.of(id)
  const { process: running } = supervisor
  if (running === undefined) return yield* Effect.die(new Error("it does not run"))
  const isLogged = (text: string) =>
    eventually(
      () =>
        logs.some(({ environmentId, message }) => environmentId === id && message.includes(text)),
      `the function's log says "${text}"`
    )
  return { get, id, isLogged, process: running, supervisor, url }
})

/** Proxy before the socket of a process. It resets the first connection that asks a second time. */
const resetSecond = Effect.fnUntraced(function* (target: string) {
  const path = `${target}-reset`
  const open = new Set<Socket>()
  let resets = 0
  const server = createServer((socket) => {
    const upstream = connect(target)
    let requests = 0
    for (const end of [socket, upstream]) {
      open.add(end)
      end.on("error", () => undefined)
    }
    socket.on("data", (chunk: Buffer) => {
      requests += 1
      upstream.write(chunk)
    })
    upstream.on("data", (chunk: Buffer) => {
      // The process has run the call by now.
      if (requests < 2 || resets > 0) return void socket.write(chunk)
      resets += 1
      socket.destroy()
    })
    socket.on("close", () => upstream.destroy())
  })
  server.listen(path)
  yield* Effect.promise(() => once(server, "listening"))
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      for (const end of open) end.destroy()
      server.close()
    })
  )
  return { path, resets: () => resets }
})

layer(withFunctions(), live)("ends of calls", (it) => {
  it.effect("gives a caller the response of a function that sets headers of the service", () =>
    Effect.gen(function* () {
      const { get } = yield* setUp
      for (const [name, status] of [
        ["refused", 200],
        ["failed", 201]
      ] as const) {
        const answer = yield* Effect.promise(() => get(name))
        assert.deepStrictEqual([answer.status, answer.text], [status, "own"], name)
        assert.deepStrictEqual(
          [...answer.headers.keys()].filter((header) => /^(?:x-svc|mf)-/.test(header)),
          []
        )
      }
    })
  )

  it.effect("answers function_error if the answer of a function is not valid HTTP", () =>
    Effect.gen(function* () {
      const { get, isLogged } = yield* setUp
      for (const [method, name] of [
        ["GET", "headers"],
        ["HEAD", "length"],
        ["HEAD", "both"]
      ] as const) {
        const answer = yield* Effect.promise(() => get(name, { method }))
        assert.strictEqual(answer.status, 500, name)
        if (method === "GET") assert.strictEqual(codeOf(answer.text), "function_error")
      }
      yield* isLogged("The response of the function is not valid HTTP. Parse Error")
    })
  )

  it.effect(
    "answers function_error in place of what the runtime says about an invalid response",
    () =>
      Effect.gen(function* () {
        const { get, id, isLogged, url } = yield* setUp
        for (const name of ["nothing", "number", "never", "used"]) {
          const answer = yield* Effect.promise(() => get(name))
          assert.deepStrictEqual(
            [answer.status, codeOf(answer.text)],
            [500, "function_error"],
            name
          )
          assert.include(answer.text, "The function returned no valid response")
        }
        yield* isLogged("The function returned no valid response")
        const socket = new WebSocket(`${url.replace("http", "ws")}/${id}/nothing`)
        socket.on("error", () => undefined)
        const [, refusal] = yield* Effect.promise(() => once(socket, "unexpected-response"))
        assert.deepStrictEqual(
          [refusal.statusCode, codeOf(yield* Effect.promise(() => text(refusal)))],
          [500, "function_error"]
        )
        // A response whose headers cannot be changed is a valid one.
        const redirect = yield* Effect.promise(() => get("copied", { redirect: "manual" }))
        assert.deepStrictEqual(
          [redirect.status, redirect.headers.get("location")],
          [302, "https://game.example/"]
        )
      })
  )

  it.effect("fails a cron and a hook that never end with function_error", () =>
    Effect.gen(function* () {
      const { id } = yield* setUp
      const runtime = yield* FunctionsRuntime
      for (const call of [
        runtime.scheduled(id, "* * * * *", 0),
        runtime.hook(id, "onStats", { playerId: "pl_1", stats: {} })
      ]) {
        const { _tag, message } = yield* Effect.flip(call)
        assert.strictEqual(_tag, "function_error")
        assert.include(message, "The function returned no valid response")
      }
    })
  )

  it.effect("answers function_error to the calls of a process that is killed", () =>
    Effect.gen(function* () {
      const { get, process: running, supervisor } = yield* setUp
      const calls = Array.from({ length: 20 }, () => get("slow"))
      yield* eventually(() => supervisor.load === calls.length, "all calls run")
      process.kill(running.pid, "SIGKILL")
      // These find the socket of a process that has just gone.
      const late = Array.from({ length: 20 }, () => get("calls"))
      for (const { status, text } of yield* Effect.promise(() => Promise.all(calls))) {
        assert.deepStrictEqual([status, codeOf(text)], [500, "function_error"])
        assert.include(text, "The process of the function has ended.")
      }
      for (const { status, text } of yield* Effect.promise(() => Promise.all(late))) {
        if (status !== 200) assert.strictEqual(codeOf(text), "function_error")
      }
    })
  )

  it.effect("answers function_error if a process takes no connection", () =>
    Effect.gen(function* () {
      const { get, id, isLogged, process: running, url } = yield* setUp
      running.agent.destroy()
      Object.assign(running.sockets, { main: `${running.sockets.main}-absent` })
      const answer = yield* Effect.promise(() => get("calls"))
      assert.deepStrictEqual([answer.status, codeOf(answer.text)], [500, "function_error"])
      const socket = new WebSocket(`${url.replace("http", "ws")}/${id}/`)
      socket.on("error", () => undefined)
      const [, refusal] = yield* Effect.promise(() => once(socket, "unexpected-response"))
      assert.strictEqual(refusal.statusCode, 500)
      yield* isLogged("closed the connection")
    })
  )

  it.effect("runs a call once whose kept connection breaks after it has run", () =>
    Effect.gen(function* () {
      const { get, process: running } = yield* setUp
      const proxy = yield* resetSecond(running.sockets.main)
      running.agent.destroy()
      Object.assign(running.sockets, { main: proxy.path })
      const post = { method: "POST" }
      assert.strictEqual((yield* Effect.promise(() => get("counted", post))).text, "1")
      // The second connection carries the number again that the first one has used.
      const broken = yield* Effect.promise(() => get("counted", post))
      assert.strictEqual(proxy.resets(), 1)
      assert.deepStrictEqual([broken.status, codeOf(broken.text)], [500, "function_error"])
      assert.strictEqual((yield* Effect.promise(() => get("calls"))).text, "2")
      assert.strictEqual((yield* Effect.promise(() => get("counted", post))).text, "3")
    }).pipe(Effect.scoped)
  )
})

describe("faults of the service", () => {
  it("reach its log once a minute for an environment, with the number of those between", () => {
    let now = 0
    const failures = new CallFailures(
      () => now,
      () => undefined
    )
    const fault = new Error("fault")
    assert.strictEqual(failures.fault(fault), fault)
    now = 59_999
    for (let count = 0; count < 3; count += 1) assert.isUndefined(failures.fault(fault))
    now = 60_000
    const next = failures.fault(fault)
    assert.instanceOf(next, Error)
    assert.deepStrictEqual(next instanceof Error && [next.message, next.cause], [
      "3 faults before this one were not logged.",
      fault
    ])
  })
})
