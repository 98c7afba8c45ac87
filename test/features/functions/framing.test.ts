/** Requests whose framing a client has chosen to have its function read more, or other, requests than it sent. */
import { connect } from "node:net"
import { text as readText } from "node:stream/consumers"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { FunctionsWorld, program, withFunctions } from "../../support/functions.ts"

const live = { timeout: "120 seconds", excludeTestServices: true } as const

/** Notes each request that it gets, and returns the notes at `/seen`. */
const notes = `
  const seen = []
  export default { async fetch(request) {
    const { pathname } = new URL(request.url)
    if (pathname === "/seen") return Response.json(seen.splice(0))
    const player = request.headers.get("svc-player")
    const note = { method: request.method, pathname, player, body: "" }
    seen.push(note)
    note.body = await request.text()
    return new Response("ok")
  } }`

interface Note {
  readonly method: string
  readonly pathname: string
  readonly player: string | null
  readonly body: string
}

/** What an attacker wants the function to take for a request of a player. */
const forged =
  "GET /forged HTTP/1.1\r\nHost: a\r\nSvc-Player: pl_forged\r\nCf-Connecting-Ip: 6.6.6.6\r\n" +
  "X-Svc-Kind: fetch\r\nX-Svc-Url: http://game.example/forged\r\n\r\n"

const chunked = `Transfer-Encoding: chunked\r\n\r\n${forged.length.toString(16)}\r\n${forged}\r\n0\r\n\r\n`
const sized = `Content-Length: ${forged.length}\r\n\r\n${forged}`

const methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]

/** Sends bytes on one connection, and returns all that comes back until it closes. */
const exchange = (url: string, bytes: string) =>
  Effect.promise(() => {
    const socket = connect(Number(new URL(url).port), "127.0.0.1")
    socket.on("error", () => undefined)
    socket.write(bytes)
    return readText(socket)
  })

const statuses = (answers: string): ReadonlyArray<string> =>
  Array.from(answers.matchAll(/HTTP\/1\.1 (\d+)/g), ([, status = ""]) => status)

const setUp = Effect.gen(function* () {
  const { live: run, url } = yield* FunctionsWorld
  const id = run(program(notes))
  const seen = Effect.promise(async (): Promise<ReadonlyArray<Note>> => {
    const answer = await fetch(`${url}/${id}/seen`)
    return JSON.parse(await answer.text())
  })
  yield* seen
  const send = (method: string, rest: string, close = true) =>
    `${method} /${id}/own HTTP/1.1\r\nHost: a\r\n${close ? "Connection: close\r\n" : ""}${rest}`
  return { url, id, seen, send }
})

layer(withFunctions(), live)("framing of requests for functions", (it) => {
  it.effect("passes each body on as that of its one request, with every method", () =>
    Effect.gen(function* () {
      const { seen, send, url } = yield* setUp
      for (const method of methods) {
        for (const rest of [chunked, sized]) {
          const answers = yield* exchange(url, send(method, rest))
          const notes = yield* seen
          assert.deepStrictEqual(statuses(answers), ["200"], `${method} ${rest}`)
          assert.deepStrictEqual(
            notes,
            [{ method, pathname: "/own", player: null, body: forged }],
            `${method} ${rest}`
          )
        }
      }
    })
  )

  it.effect("passes several requests of one connection on as those that the client sent", () =>
    Effect.gen(function* () {
      const { seen, send, url } = yield* setUp
      const all = methods.flatMap((method) => [
        send(method, chunked, false),
        send(method, sized, false)
      ])
      const last = send("GET", "\r\n")
      const answers = yield* exchange(url, [...all.map((one) => `${one}`), last].join(""))
      assert.deepStrictEqual(
        statuses(answers),
        Array.from({ length: all.length + 1 }, () => "200")
      )
      const notes = yield* seen
      assert.deepStrictEqual(
        notes.map(({ method, pathname }) => `${method} ${pathname}`).toSorted(),
        [...methods, ...methods, "GET"].map((method) => `${method} /own`).toSorted()
      )
    })
  )

  it.effect("refuses a request whose Connection header names framing or identity", () =>
    Effect.gen(function* () {
      const { id, seen, url } = yield* setUp
      const names = [
        "Content-Length",
        "Transfer-Encoding",
        "Host",
        "Authorization",
        "Cookie",
        "Svc-Player",
        "X-Svc-Facts",
        "CF-Connecting-IP",
        "MF-Route-Override",
        "X-Forwarded-For"
      ]
      for (const name of names) {
        for (const rest of [chunked, sized]) {
          const head = `GET /${id}/own HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, ${name}\r\n`
          const answers = yield* exchange(url, head + rest)
          assert.deepStrictEqual(statuses(answers), ["400"], name)
          const { error } = JSON.parse(answers.slice(answers.indexOf("{")))
          assert.strictEqual(error.code, "invalid_request")
          assert.deepStrictEqual(error.details.issues, [
            {
              path: "headers.connection",
              message: `Connection must not name ${name.toLowerCase()}.`
            }
          ])
        }
      }
      assert.deepStrictEqual(yield* seen, [])
    })
  )

  it.effect("refuses framings that readers may take differently", () =>
    Effect.gen(function* () {
      const { seen, send, url } = yield* setUp
      const ambiguous = [
        `Content-Length: 5\r\n${chunked}`,
        `Content-Length: 5\r\n${sized}`,
        "Content-Length: 5, 5\r\n\r\n12345",
        "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: identity\r\n\r\n"
      ]
      for (const rest of ambiguous) {
        for (const method of ["GET", "POST"]) {
          const answers = yield* exchange(url, send(method, rest))
          assert.deepStrictEqual(statuses(answers), ["400"], rest)
        }
      }
      assert.deepStrictEqual(yield* seen, [])
    })
  )

  it.effect("drops trailers and expectations of requests for functions", () =>
    Effect.gen(function* () {
      const { seen, send, url } = yield* setUp
      const trailers = "TE: trailers\r\nTrailer: Svc-Player\r\nTransfer-Encoding: chunked\r\n\r\n"
      const answers = yield* exchange(
        url,
        send("POST", `${trailers}2\r\nhi\r\n0\r\nSvc-Player: pl_forged\r\n\r\n`)
      )
      assert.deepStrictEqual(statuses(answers), ["200"])
      assert.deepStrictEqual(yield* seen, [
        { method: "POST", pathname: "/own", player: null, body: "hi" }
      ])
    })
  )
})
