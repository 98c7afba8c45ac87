/**
 * Attacks from advisories of comparable servers and libraries, repeated against this service and its client.
 * Each test name cites its advisory. The README of this folder lists all advisories with their tests.
 */
import { gzipSync } from "node:zlib"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { WebSocket as Socket, WebSocketServer } from "ws"
import type { Method } from "#rpc/identities"
import { Outgoing } from "#server/platform/outgoing"
import { sha256 } from "#server/platform/secrets"
import { endpoints } from "#server/http/authorization"
import { createClient, memoryStorage } from "#client/client"
import { type Closed, openSocket } from "#client/socket"
import { TestApp } from "#testing/app"
import { request } from "#testing/players"
import { FakeAuth } from "../support/client/fake-auth.ts"
import { rejection } from "../support/client/waits.ts"
import { sendRaw } from "../support/http/raw.ts"
import { startServer } from "../support/local-server.ts"
import { makeTenantFixtures } from "../support/operator-harness.ts"
import { SecurityAppLive, live } from "../support/security/security-harness.ts"

/** Query options by which other servers returned protected fields. */
const options = new URLSearchParams({
  include: "sessions,identities,keys",
  fields: "*",
  select: "password_hash,token_hash",
  expand: "all",
  populate: "*",
  keys: "_session_token,refreshToken",
  where: JSON.stringify({ _session_token: { $gt: "" } }),
  filter: "1=1",
  "select[]": "token_hash",
  $include: "*",
  debug: "true",
  format: "raw"
})

/** Ids by which a client that does not encode them reaches another endpoint. */
const traversalIds = [
  "..",
  ".",
  "../players/me",
  "..%2fplayers%2fme",
  "%2e%2e",
  "%2e%2e%2fplayers%2fme",
  "..\\players\\me",
  "/v1/players/me",
  "//evil.example/v1/players/me",
  "slot/../../players/me",
  "slot?admin=1",
  "slot#",
  "slot;x=1",
  "slot\u0000",
  "slot\r\nx-svc-key: sk_",
  " ",
  ""
]

/** Size in bytes of a frame that compresses to a thousandth of it. */
const unpackedBytes = 144 * 1024 * 1024

/** The same traversals in request targets that no client normalizes. */
const rawPaths = [
  "/v1/saves/../players/me",
  "/v1/saves/%2e%2e/players/me",
  "/v1/saves/..%2fplayers%2fme",
  "/v1/saves/..%5cplayers%5cme",
  "/v1/./players/me",
  "/v1/players/me%00",
  "/v1/players/me%2f",
  "/v1/players/%6d%65/..",
  "/v1/gamedata/definitions/../../players/me",
  "/healthz/../v1/players/me"
]

layer(SecurityAppLive(), live)("the service", (it) => {
  it.effect(
    "returns no secret to a read, whatever options its query has (parse-server CVE-2026-30965)",
    () =>
      Effect.gen(function* () {
        const { url } = yield* TestApp
        const sql = yield* SqlClient.SqlClient
        const tenants = yield* makeTenantFixtures("readers")
        const { developer, development, player, production, projectId } = tenants
        const session = (developer.headers["authorization"] ?? "").replace("Bearer ", "")
        const plainSecrets = [
          player.accessToken,
          player.refreshToken,
          tenants.bannedPlayer.refreshToken,
          development.secretKey,
          production.secretKey,
          session
        ]
        const [row] = yield* sql<{ readonly hash: string; readonly jwk: string }>`
        select password_hash as hash, (select private_jwk_sealed from signing_keys) as jwk
        from developers where id = ${developer.id}`
        const secrets = [
          ...plainSecrets,
          ...plainSecrets.map(sha256),
          String(row?.hash),
          String(row?.jwk)
        ]
        const own = {
          "x-svc-key": development.publishableKey,
          authorization: `Bearer ${player.accessToken}`
        }
        const secret = { "x-svc-key": development.secretKey }
        const callers = {
          player: own,
          evenBanned: own,
          publishable: own,
          maybePlayer: own,
          maybePlayerEvenBanned: own,
          secret
        }
        const others = { developer: developer.headers, member: developer.headers }
        const headersFor: Readonly<Record<string, Readonly<Record<string, string>>>> = {
          ...callers,
          ...others
        }
        const samples: Readonly<Record<string, string>> = {
          projectId,
          env: "development",
          playerId: player.id,
          provider: "google",
          version: "1",
          name: "lobby",
          key: "slot"
        }
        for (const { access, method, path } of endpoints) {
          if (method !== "GET") continue
          const filled = path.replace(
            /:([A-Za-z0-9]+)/g,
            (_, name: string) => samples[name] ?? name
          )
          const { body } = yield* request(`${url}${filled}?${options}`, {
            headers: headersFor[access] ?? {}
          })
          const text = JSON.stringify(body)
          for (const value of secrets) assert.notInclude(text, value, path)
          assert.notMatch(text, /password_?hash|token_?hash|sealed|\$argon2/i, path)
        }
      })
  )

  it.effect("routes no path with a traversal to another endpoint (supabase CVE-2025-48370)", () =>
    Effect.gen(function* () {
      const { url } = yield* TestApp
      const { development, player } = yield* makeTenantFixtures("traversal")
      for (const path of rawPaths) {
        const answer = yield* sendRaw(
          url,
          `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n` +
            `X-Svc-Key: ${development.publishableKey}\r\n` +
            `Authorization: Bearer ${player.accessToken}\r\n\r\n`
        )
        assert.match(answer, /^HTTP\/1\.1 40[04] /, path)
        assert.notInclude(answer, player.id, path)
      }
    })
  )

  it.effect("negotiates no compression on a socket (undici CVE-2026-1526)", () =>
    Effect.gen(function* () {
      const { socketUrl } = yield* TestApp
      const extensions = yield* Effect.callback<string>((resume) => {
        const socket = new Socket(socketUrl, { perMessageDeflate: true })
        socket.on("open", () => {
          resume(Effect.succeed(socket.extensions))
          socket.terminate()
        })
        return Effect.sync(() => socket.terminate())
      })
      assert.strictEqual(extensions, "")
    })
  )
})

describe("the client", () => {
  it.live("sends no request to another endpoint, whatever the id (supabase CVE-2025-48370)", () =>
    Effect.gen(function* () {
      const auth = new FakeAuth()
      const client = createClient({
        baseUrl: "http://service.example",
        key: "pk_test",
        fetch: auth.fetch,
        storage: memoryStorage()
      })
      const { id } = yield* Effect.promise(() => client.players.me())
      assert.match(id, /^pl_/)
      const before = auth.requests.length
      for (const text of traversalIds) {
        const provider: Method = JSON.parse(JSON.stringify(text))
        for (const call of [
          () => client.saves.get(text),
          () => client.saves.put(text, 1),
          () => client.saves.delete(text),
          () => client.identities.unlink(provider)
        ]) {
          yield* rejection(call)
        }
      }
      // The client encodes each id as one segment of the path, and refuses one of dots.
      for (const route of auth.requests.slice(before)) {
        assert.match(route, /^(?:DELETE \/v1\/players\/me\/identities|[A-Z]+ \/v1\/saves)\/[^/]+$/)
      }
      client.close()
    })
  )

  it.live(
    "closes the client's socket on a frame that decompresses to 144 MiB (undici CVE-2026-1526, -12151, -9675)",
    () =>
      Effect.gen(function* () {
        const payload = Buffer.alloc(unpackedBytes, "a")
        const server = yield* Effect.acquireRelease(
          Effect.sync(() => new WebSocketServer({ port: 0, perMessageDeflate: true })),
          (open) => Effect.sync(() => open.close())
        )
        server.on("connection", (socket) => {
          socket.on("error", () => undefined)
          socket.send(payload, { binary: false, compress: true })
        })
        const address = server.address()
        const port = typeof address === "object" && address !== null ? address.port : 0
        const received: Array<string> = []
        const closed = yield* Effect.callback<Closed>((resume) => {
          const close = openSocket({
            WebSocket,
            url: `ws://127.0.0.1:${port}`,
            opened: () => undefined,
            received: (text) => received.push(text),
            closed: (how) => resume(Effect.succeed(how))
          })
          return Effect.sync(close)
        })
        assert.notStrictEqual(closed.code, 1000)
        assert.deepStrictEqual(received, [])
      }),
    60_000
  )
})

describe("a request to a developer's server", () => {
  it.live("reads a compressed response of at most 64 KiB and does not decompress it", () =>
    Effect.gen(function* () {
      const compressed = gzipSync(Buffer.alloc(16 * 1024 * 1024))
      assert.isBelow(compressed.length, 65_536)
      const { port } = yield* startServer((_, response) => {
        response.writeHead(200, { "content-encoding": "gzip" }).end(compressed)
      })
      const url = `http://127.0.0.1:${port}/`
      const body = yield* Effect.flatMap(Outgoing, (outgoing) =>
        outgoing.post({ url, body: "{}", headers: {}, timeoutMillis: 2000, allowLoopback: true })
      ).pipe(Effect.provide(Outgoing.layer, { local: true }))
      assert.isAtMost(body.length, compressed.length)
    })
  )
})
