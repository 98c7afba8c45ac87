/** Clients that go away while their call waits, at each step: nothing of them stays, and the runner goes on. */
import { once } from "node:events"
import { connect, type Socket } from "node:net"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { FunctionHosts } from "#server/features/functions/host/local"
import { FunctionsWorld, program, withFunctions } from "../../support/functions.ts"
import { eventually } from "../../support/voice-peer.ts"

const live = { timeout: "120 seconds", excludeTestServices: true } as const

/** Counts its open sockets and the requests that it has got. */
const counting = `
  const count = { sockets: 0, opened: 0, requests: 0 }
  export default { async fetch(request) {
    const { pathname } = new URL(request.url)
    if (pathname === "/count") return Response.json(count)
    if (request.headers.get("upgrade") === "websocket") {
      const { 0: client, 1: server } = new WebSocketPair()
      server.accept()
      count.sockets += 1
      count.opened += 1
      let isOpen = true
      const end = () => { if (isOpen) count.sockets -= 1; isOpen = false }
      server.addEventListener("close", end)
      server.addEventListener("error", end)
      return new Response(null, { status: 101, webSocket: client })
    }
    count.requests += 1
    if (pathname === "/slow") await new Promise((resolve) => setTimeout(resolve, 20_000))
    await request.text().catch(() => "")
    return new Response(new ReadableStream({ pull: (out) => out.enqueue(new Uint8Array(65536)) }))
  } }`

const upgrade =
  "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
  "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"

/** Ways of a client to go away. */
const ways: Readonly<Record<string, (socket: Socket) => void>> = {
  reset: (socket) => void socket.resetAndDestroy(),
  close: (socket) => void socket.destroy(),
  half: (socket) => void socket.end()
}

const looks = 500

const setUp = Effect.gen(function* () {
  const { live: run, url } = yield* FunctionsWorld
  const { local } = yield* FunctionHosts
  if (typeof local === "string") return yield* Effect.die(new Error(local))
  const id = run(program(counting))
  const host = local.hosts.of(id)
  const dial = Effect.promise(async () => {
    const socket = connect(Number(new URL(url).port), "127.0.0.1")
    socket.on("error", () => undefined)
    await once(socket, "connect")
    return socket
  })
  const start = (path: string, rest: string, method = "GET") =>
    Effect.tap(dial, (socket) =>
      Effect.sync(() => socket.write(`${method} /${id}${path} HTTP/1.1\r\nHost: a\r\n${rest}`))
    )
  const count = Effect.promise(async () => {
    const answer = await fetch(`${url}/${id}/count`)
    return JSON.parse(await answer.text()) as { sockets: number; opened: number; requests: number }
  })
  /** Each look is a call, so this is no busy loop. */
  const closed = (way: string) =>
    count.pipe(
      Effect.repeat({ until: ({ sockets }) => sockets === 0, times: looks }),
      Effect.map(({ sockets }) => assert.strictEqual(sockets, 0, way))
    )
  const gone = eventually(() => host.supervisor.load === 0, "no call is under way")
  /** The function runs no longer, so the next call starts it. */
  const stop = Effect.promise(() => host.supervisor.exclusively(0, async () => undefined))
  return { host, start, count, closed, gone, stop }
})

const isStarting = ({ supervisor }: { supervisor: { isQuiet: boolean } }) => !supervisor.isQuiet

layer(withFunctions(), live)("clients that go away", (it) => {
  it.effect(
    "leave no WebSocket open that was asked for while the function started",
    () =>
      Effect.gen(function* () {
        const { closed, gone, host, start, stop } = yield* setUp
        for (const [way, leave] of Object.entries(ways)) {
          yield* stop
          const sockets = yield* Effect.all(
            Array.from({ length: 20 }, () => start("/", upgrade)),
            { concurrency: "unbounded" }
          )
          yield* eventually(() => isStarting(host), "the function starts")
          for (const socket of sockets) leave(socket)
          yield* gone
          yield* closed(way)
        }
      }),
    { tags: "long" }
  )

  it.effect(
    "leave no open WebSocket behind, whichever way they go",
    () =>
      Effect.gen(function* () {
        const { closed, count, gone, start } = yield* setUp
        for (const [way, leave] of Object.entries(ways)) {
          const before = (yield* count).opened
          const sockets = yield* Effect.all(Array.from({ length: 10 }, () => start("/", upgrade)))
          yield* Effect.promise(() => Promise.all(sockets.map((socket) => once(socket, "data"))))
          assert.strictEqual((yield* count).opened, before + 10)
          for (const socket of sockets) leave(socket)
          yield* gone
          yield* closed(way)
        }
      }),
    { tags: "long" }
  )

  it.effect("end their requests while the function starts, runs, reads and answers", () =>
    Effect.gen(function* () {
      const { count, gone, host, start, stop } = yield* setUp
      const body = "Content-Length: 1000000\r\n\r\nbegin"
      for (const leave of Object.values(ways)) {
        yield* stop
        const calls = [
          start("/", "\r\n"),
          start("/", body, "POST"),
          start("/", body),
          start("/", "Expect: 100-continue\r\n" + body, "POST"),
          start("/", "Transfer-Encoding: chunked\r\n\r\n5\r\nbegin\r\n", "DELETE")
        ]
        const waiting = yield* Effect.all(calls)
        yield* eventually(() => isStarting(host), "the function starts")
        for (const socket of waiting) leave(socket)
        yield* gone
        assert.strictEqual((yield* count).requests, 0)
        const slow = yield* start("/slow", "\r\n")
        const reading = yield* start("/", body, "POST")
        const answered = yield* start("/", "\r\n")
        yield* Effect.promise(() => once(answered, "data"))
        for (const socket of [slow, reading, answered]) leave(socket)
        yield* gone
      }
    })
  )
})
