/** Bodies in very many small chunks: each chunk takes the service time, however few bytes it has. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { fineBodiesMax } from "#server/http/client-connections"
import { bodyPieces } from "#server/http/compact-message"
import { TestApp } from "#testing/app"
import { openRawConnection, responsesIn } from "../support/malformed/raw-connection.ts"
import { live } from "../support/security/security-harness.ts"
import { DatabaseLive } from "../support/service.ts"

const App = TestApp.layerWith({ SVC_THROTTLES: "on", SVC_TRUSTED_PROXIES: "127.0.0.1" }).pipe(
  Layer.provide(DatabaseLive)
)

/** A sign-in from an address, whose body `{    }` comes in chunks. */
const signIn = (key: string, address: string, chunks: ReadonlyArray<string>): string =>
  `POST /v1/auth/guest HTTP/1.1\r\nHost: a\r\nX-Svc-Key: ${key}\r\nX-Forwarded-For: ${address}\r\n` +
  "Connection: close\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" +
  chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join("") +
  "0\r\n\r\n"

const blanks = (count: number, bytes: number) => [
  "{",
  ...Array.from({ length: count }, () => " ".repeat(bytes)),
  "}"
]

layer(App, live)("bodies in small chunks", (it) => {
  it.effect(
    "cuts a body in too many small chunks, and refuses an address that sends more of them",
    () =>
      Effect.gen(function* () {
        const { publishableKey, url } = yield* TestApp
        const send = Effect.fnUntraced(function* (address: string, chunks: ReadonlyArray<string>) {
          const connection = yield* openRawConnection(url)
          connection.send(signIn(publishableKey, address, chunks))
          yield* connection.ended
          return responsesIn(connection.received)
        }, Effect.scoped)
        const fine = blanks(bodyPieces.bodyPiecesMax + 100, 1)
        const coarse = blanks(200, bodyPieces.bodyPieceMeanBytes)
        assert.deepStrictEqual(yield* send("192.0.2.1", blanks(500, 1)), [[200]])
        for (let n = 0; n < fineBodiesMax; n++) {
          assert.deepStrictEqual(yield* send("192.0.2.1", fine), [])
        }
        assert.deepStrictEqual(yield* send("192.0.2.1", coarse), [[429, "rate_limited"]])
        assert.deepStrictEqual(yield* send("192.0.2.2", coarse), [[200]])
      })
  )
})
