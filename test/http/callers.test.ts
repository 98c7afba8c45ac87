/** Checks of the caller of a request, their order, and the resolution of client addresses. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Layer, Result } from "effect"
import { IpNetwork } from "effect/net"
import { resolveClientAddress } from "#server/platform/client-address"
import { at, request } from "#testing/players"
import {
  buildAnother,
  addressOfNode,
  configure,
  makeTenants,
  nodeWith,
  SharedDatabase
} from "../support/http-stack.ts"
import { codeOf } from "../support/bodies.ts"

const Node = nodeWith({ SVC_FEATURES: "multiplayer,saves" }).pipe(
  Layer.provideMerge(SharedDatabase.layer)
)

type Headers = Readonly<Record<string, string>>

const setUp = Effect.gen(function* () {
  const url = yield* addressOfNode
  const { development, production } = yield* makeTenants
  const signIn = (publishableKey: string) =>
    Effect.map(
      request(`${url}/v1/auth/guest`, { headers: { "x-svc-key": publishableKey }, body: {} }),
      ({ body }) => `Bearer ${String(at(body, "accessToken"))}`
    )
  return { url, development, production, signIn }
})

layer(Node)("callers", (it) => {
  it.effect("checks key, origin, token, feature and payload in this order", () =>
    Effect.gen(function* () {
      const { development, signIn, url } = yield* setUp
      const bearer = yield* signIn(development.publishableKey)
      const page = "https://game.example"
      const document = { web: { allowedOrigins: [page] } }
      yield* configure(development, document)
      const ask = (path: string, headers: Headers, body?: string) =>
        Effect.map(
          request(`${url}${path}`, {
            headers,
            ...(body === undefined ? {} : { method: "PATCH", body })
          }),
          codeOf
        )
      const wrongOrigin = { origin: "https://evil.example" }
      const key = { "x-svc-key": development.publishableKey }
      const rooms = (headers: Headers) => ask("/v1/rooms?limit=0", headers)
      assert.strictEqual(yield* rooms(wrongOrigin), "invalid_key")
      assert.strictEqual(yield* rooms({ ...wrongOrigin, ...key }), "origin_not_allowed")
      assert.strictEqual(yield* rooms({ ...key, origin: page }), "feature_disabled")
      yield* configure(development, { ...document, features: { multiplayer: true } })
      assert.strictEqual(yield* rooms({ ...key, origin: page }), "invalid_request")

      const rename = (headers: Headers, body = "{") => ask("/v1/players/me", headers, body)
      const token = { authorization: bearer }
      assert.strictEqual(yield* rename({ ...wrongOrigin, ...token }), "invalid_key")
      assert.strictEqual(yield* rename({ ...wrongOrigin, ...key }), "origin_not_allowed")
      assert.strictEqual(yield* rename(key), "unauthorized")
      assert.strictEqual(yield* rename({ ...key, ...token }), "invalid_json")
      assert.strictEqual(yield* rename({ ...key, ...token }, "{}"), "invalid_request")
    })
  )

  it.effect("names the config path of a disabled feature", () =>
    Effect.gen(function* () {
      const { development, url } = yield* setUp
      const answer = yield* request(`${url}/v1/rooms`, {
        headers: { "x-svc-key": development.publishableKey }
      })
      assert.strictEqual(answer.status, 403)
      assert.deepStrictEqual(at(answer.body, "error", "details"), {
        feature: "multiplayer",
        configPath: "features.multiplayer"
      })
    })
  )

  it.effect("answers feature_unavailable for a feature that the service does not offer", () =>
    Effect.gen(function* () {
      const { development } = yield* makeTenants
      const other = yield* buildAnother(nodeWith({ SVC_FEATURES: "saves" }))
      const url = yield* Effect.provideContext(addressOfNode, other)
      yield* configure(development, { features: { multiplayer: true } })
      const answer = yield* request(`${url}/v1/rooms`, {
        headers: { "x-svc-key": development.publishableKey }
      })
      assert.strictEqual(codeOf(answer), "feature_unavailable")
      assert.deepStrictEqual(at(answer.body, "error", "details"), { features: ["multiplayer"] })
    })
  )

  it.effect("accepts only the kind of key that an endpoint requires", () =>
    Effect.gen(function* () {
      const { development, signIn, url } = yield* setUp
      const { publishableKey, secretKey } = development
      const authorization = yield* signIn(publishableKey)
      const ask = (method: string, path: string, key: string) =>
        Effect.map(
          request(`${url}${path}`, {
            method,
            headers: { "x-svc-key": key, authorization },
            ...(method === "GET" ? {} : { body: {} })
          }),
          codeOf
        )
      const publishable = [
        ["POST", "/v1/auth/guest"],
        ["POST", "/v1/auth/refresh"],
        ["POST", "/v1/auth/logout"],
        ["GET", "/v1/players/me"],
        ["PATCH", "/v1/players/me"],
        ["GET", "/v1/rooms"],
        ["GET", "/v1/saves"],
        ["GET", "/v1/saves/s"],
        ["PUT", "/v1/saves/s"],
        ["DELETE", "/v1/saves/s"],
        ["GET", "/v1/stats"],
        ["POST", "/v1/stats"],
        ["GET", "/v1/gamedata/definitions"]
      ] as const
      for (const [method, path] of publishable) {
        assert.strictEqual(yield* ask(method, path, secretKey), "invalid_key", path)
        assert.notStrictEqual(yield* ask(method, path, publishableKey), "invalid_key", path)
      }
      const secret = [
        ["GET", "/v1/config"],
        ["PUT", "/v1/config"],
        ["GET", "/v1/config/versions"],
        ["GET", "/v1/admin/features"],
        ["GET", "/v1/admin/integrity/webhook-secret"],
        ["POST", "/v1/admin/integrity/webhook-secret"]
      ] as const
      for (const [method, path] of secret) {
        assert.strictEqual(yield* ask(method, path, publishableKey), "invalid_key")
        assert.strictEqual(yield* ask(method, path, secretKey), "ok")
      }
      const inQuery = yield* request(`${url}/v1/config?key=${secretKey}&x-svc-key=${secretKey}`)
      assert.strictEqual(codeOf(inQuery), "invalid_key")
    })
  )

  it.effect("names the kind of key that a request has and the kind that it needs", () =>
    Effect.gen(function* () {
      const { development, url } = yield* setUp
      const kinds = {
        [development.publishableKey]: "a publishable key (pk_)",
        [development.secretKey]: "a secret key (sk_)",
        [`kds_${"A".repeat(43)}`]: "a developer session (kds_)",
        "eyJhbGciOiJFUzI1NiJ9.e30.x": "an access token"
      }
      const needed = {
        "/v1/players/me": "a publishable key (pk_)",
        "/v1/config": "a secret key (sk_)"
      }
      for (const [path, need] of Object.entries(needed)) {
        for (const [key, given] of Object.entries(kinds)) {
          if (given === need) continue
          const { body, status } = yield* request(`${url}${path}`, {
            headers: { "x-svc-key": key }
          })
          assert.deepStrictEqual([status, codeOf({ body })], [401, "invalid_key"], path)
          const message = `This is ${given}. This endpoint needs ${need}.`
          assert.strictEqual(at(body, "error", "message"), message)
        }
      }
    })
  )

  it.effect("refuses pages of other origins with an error that they can read", () =>
    Effect.gen(function* () {
      const { development, production, url } = yield* setUp
      const allowed = {
        web: { allowedOrigins: ["https://game.example", "https://*.games.example"] }
      }
      const from = (key: string, origin: string | undefined) =>
        request(`${url}/v1/auth/guest`, {
          headers: { "x-svc-key": key, ...(origin === undefined ? {} : { origin }) },
          body: {}
        })
      const { publishableKey: dev } = development
      const { publishableKey: prod } = production
      assert.strictEqual(codeOf(yield* from(prod, "https://anywhere.example")), "ok")
      yield* configure(development, allowed)
      yield* configure(production, allowed)
      for (const origin of [
        undefined,
        "https://game.example",
        "https://eu.games.example",
        // The origin of the service itself.
        "https://play.example.com"
      ]) {
        assert.strictEqual(codeOf(yield* from(prod, origin)), "ok", origin)
      }
      for (const origin of [
        "null",
        "http://game.example",
        "https://game.example:8443",
        "https://game.example.evil",
        "https://evilgame.example",
        "https://games.example",
        "https://user@game.example",
        "http://localhost:3000"
      ]) {
        const answer = yield* from(prod, origin)
        assert.strictEqual(answer.status, 403, origin)
        assert.strictEqual(codeOf(answer), "origin_not_allowed", origin)
        assert.strictEqual(answer.headers.get("access-control-allow-origin"), "*")
      }
      assert.strictEqual(codeOf(yield* from(dev, "http://localhost:3000")), "ok")
      const secret = yield* request(`${url}/v1/config`, {
        headers: { "x-svc-key": production.secretKey, origin: "https://evil.example" }
      })
      assert.strictEqual(codeOf(secret), "origin_not_allowed")
    })
  )
})

describe("client addresses", () => {
  const trusted = ["10.0.0.0/8", "fd00::/8", "127.0.0.1/32"].map((network) =>
    Result.getOrThrow(IpNetwork.fromString(network))
  )

  it("counts a client by its IPv4 address or the /64 network of its IPv6 address", () => {
    const keyOf = (remote: string, forwardedFor?: string) =>
      resolveClientAddress(remote, forwardedFor, [])
    assert.strictEqual(keyOf("192.0.2.1"), "192.0.2.1")
    assert.strictEqual(keyOf("::ffff:192.0.2.1"), "192.0.2.1")
    assert.strictEqual(keyOf("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64")
    assert.strictEqual(keyOf("2001:db8:1:2:ffff::1"), "2001:db8:1:2::/64")
    assert.strictEqual(keyOf("192.0.2.1", "198.51.100.7"), "192.0.2.1")
    assert.strictEqual(keyOf("not an address"), "unknown")
  })

  it("uses the entries of X-Forwarded-For that trusted proxies wrote", () => {
    const keyOf = (remote: string, forwardedFor?: string) =>
      resolveClientAddress(remote, forwardedFor, trusted)
    assert.strictEqual(keyOf("10.0.0.1"), "10.0.0.1")
    assert.strictEqual(keyOf("10.0.0.1", "198.51.100.7"), "198.51.100.7")
    assert.strictEqual(keyOf("192.0.2.1", "198.51.100.7"), "192.0.2.1")
    assert.strictEqual(keyOf("10.0.0.1", "6.6.6.6, 198.51.100.7"), "198.51.100.7")
    assert.strictEqual(keyOf("10.0.0.1", "6.6.6.6, 198.51.100.7, 10.9.9.9"), "198.51.100.7")
    assert.strictEqual(keyOf("::ffff:10.0.0.1", "[2001:db8::1]:443"), "2001:db8::/64")
    assert.strictEqual(keyOf("fd00::1", "198.51.100.7:5000"), "198.51.100.7")
    assert.strictEqual(keyOf("10.0.0.1", "garbage"), "10.0.0.1")
    assert.strictEqual(keyOf("10.0.0.1", "6.6.6.6, garbage, 10.9.9.9"), "10.9.9.9")
  })
})
