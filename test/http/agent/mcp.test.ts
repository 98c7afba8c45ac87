/** The agent tool: `/mcp` with the official client, over HTTP on two nodes and over `svc mcp`. */
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import { fileURLToPath } from "node:url"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { http } from "#rpc/limits"
import { operationTools } from "#server/http/agent/operations"
import { at, guest, request } from "#testing/players"
import {
  buildAnother,
  addressOfNode,
  configure,
  makeTenants,
  nodeWith,
  SharedDatabase,
  type Tenant
} from "../../support/http-stack.ts"

const svc = fileURLToPath(new URL("../../../src/cli/svc.js", import.meta.url))

const connect = (transport: Transport) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const client = new Client({ name: "conformance", version: "1" })
      await client.connect(transport)
      return client
    }),
    (client) => Effect.promise(() => client.close())
  )

/** Sends each request to the next of these services, as a load balancer may. */
const roundRobin = (urls: ReadonlyArray<string>): typeof fetch => {
  let sent = 0
  return (target, init) => {
    const { pathname } = new URL(String(target))
    sent += 1
    return fetch(`${urls[sent % urls.length]}${pathname}`, init)
  }
}

const overHttp = (urls: ReadonlyArray<string>, headers: Readonly<Record<string, string>>) => {
  const url = new URL(`${urls[0]}/mcp`)
  const options = { requestInit: { headers }, fetch: roundRobin(urls) }
  return connect(new StreamableHTTPClientTransport(url, options) as Transport)
}

const overStdio = (url: string, secretKey: string) =>
  connect(
    new StdioClientTransport({
      command: process.execPath,
      args: [svc, "mcp"],
      env: { SVC_URL: url, SVC_SECRET_KEY: secretKey },
      stderr: "ignore"
    })
  )

const call = (client: Client, name: string, args: Record<string, unknown> = {}) =>
  Effect.promise(() => client.callTool({ name, arguments: args }))

const resultOf = (client: Client, name: string, args?: Record<string, unknown>) =>
  Effect.map(call(client, name, args), (answer) => {
    assert.notStrictEqual(answer.isError, true, JSON.stringify(answer.content))
    return answer.structuredContent
  })

const errorOf = (client: Client, name: string, args?: Record<string, unknown>) =>
  Effect.map(call(client, name, args), (answer) => {
    assert.isTrue(answer.isError, JSON.stringify(answer))
    return JSON.stringify(answer.content)
  })

/** The address of a second node of the same database. */
const secondNode = Effect.gen(function* () {
  const context = yield* buildAnother(nodeWith())
  return yield* Effect.provide(addressOfNode, context)
})

const makePlayer = Effect.fnUntraced(function* (tenant: Tenant, name: string) {
  const url = yield* addressOfNode
  return (yield* guest({ ...tenant, url }, name)).id
})

/** The same checks over each transport: every tool is listed, reads, changes and fails as it says. */
const conform = Effect.fnUntraced(function* (client: Client, tenant: Tenant, name: string) {
  assert.strictEqual(client.getServerVersion()?.name, "player-backend")
  yield* Effect.promise(() => client.ping())
  const { tools } = yield* Effect.promise(() => client.listTools())
  const destructive = tools.filter(({ annotations }) => annotations?.destructiveHint === true)
  const reading = tools.filter(({ annotations }) => annotations?.readOnlyHint === true)
  assert.deepStrictEqual(
    tools.map((tool) => tool.name),
    Array.from(operationTools.keys())
  )
  assert.includeMembers(
    reading.map((tool) => tool.name),
    ["config_diff", "config_read", "player_get", "players_search", "rooms_list"]
  )
  assert.deepStrictEqual(
    destructive.map((tool) => tool.name),
    [
      "appeal_resolve",
      "channel_moderate",
      "config_push",
      "deployment_activate",
      "functions_activate",
      "player_ban"
    ]
  )
  const player = yield* makePlayer(tenant, name)
  const found = yield* resultOf(client, "players_search", { q: name })
  assert.strictEqual(at(found, "players", 0, "id"), player)
  const ban = yield* resultOf(client, "player_ban", {
    playerId: player,
    reason: "spam",
    durationHours: 2
  })
  assert.isTrue(at(ban, "player", "banned"))
  const detail = yield* resultOf(client, "player_get", { playerId: player })
  assert.isTrue(at(detail, "player", "banned"))
  assert.isFalse(
    at(yield* resultOf(client, "player_unban", { playerId: player }), "player", "banned")
  )
  assert.include(yield* errorOf(client, "player_ban", { playerId: "pl_none" }), "player_not_found")
  assert.deepStrictEqual(at(yield* resultOf(client, "appeals_list"), "appeals"), [])
  assert.include(
    yield* errorOf(client, "appeal_resolve", { appealId: "x", accept: true }),
    "not_found"
  )
  const mistyped = { playerId: player, duration: 2 }
  assert.include(yield* errorOf(client, "player_ban", mistyped), "The tool has no such argument")
  assert.include(yield* errorOf(client, "player_ban"), "Missing argument")
  const endless = { playerId: player, durationHours: -1 }
  assert.include(yield* errorOf(client, "player_ban", endless), "durationHours")
  assert.isArray(at(yield* resultOf(client, "rooms_list"), "rooms"))
  assert.isNumber(at(yield* resultOf(client, "overview_read"), "players", "total"))
  assert.isArray(at(yield* resultOf(client, "features_list"), "features"))
  assert.include(yield* errorOf(client, "deployments_list"), "feature_disabled")
  return player
})

layer(nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer)))("the agent tool", (it) => {
  it.effect(
    "serves the official client over HTTP, whose requests reach either of two nodes",
    () =>
      Effect.gen(function* () {
        const { development } = yield* makeTenants
        const urls = [yield* addressOfNode, yield* secondNode]
        const client = yield* overHttp(urls, { "x-svc-key": development.secretKey })
        const player = yield* conform(client, development, "Over HTTP")
        const sql = yield* SqlClient.SqlClient
        const entries = yield* sql`
          select action, actor_kind, actor_name, address from audit where target_id = ${player}`
        assert.sameMembers(
          entries.map((entry) => entry["action"]),
          ["player.ban", "player.unban"]
        )
        for (const entry of entries) {
          assert.match(String(entry["actorName"]), /^sk_[\w-]{5} \(agent\)$/)
          assert.strictEqual(entry["address"], "127.0.0.1")
        }
      }),
    60_000
  )

  it.effect(
    "serves the official client over svc mcp",
    () =>
      Effect.gen(function* () {
        const { development } = yield* makeTenants
        const client = yield* overStdio(yield* addressOfNode, development.secretKey)
        yield* conform(client, development, "Over stdio")
      }),
    60_000
  )

  it.effect("pushes a config only onto the version that the diff has shown", () =>
    Effect.gen(function* () {
      const { development } = yield* makeTenants
      yield* configure(development, { version: 1, features: { saves: true } })
      const client = yield* overHttp([yield* addressOfNode], {
        authorization: `Bearer ${development.secretKey}`
      })
      const document = { version: 1, features: { saves: true, stats: true } }
      const diff = yield* resultOf(client, "config_diff", { document })
      assert.include(String(at(diff, "diff")), '+    "stats": true')
      const configVersion = Number(at(diff, "configVersion"))
      const before = yield* resultOf(client, "config_read")
      assert.strictEqual(at(before, "configVersion"), configVersion)
      const stale = { document, configVersion: configVersion - 1 }
      assert.include(yield* errorOf(client, "config_push", stale), "config_conflict")
      const pushed = yield* resultOf(client, "config_push", { document, configVersion })
      assert.deepStrictEqual(at(pushed, "changed"), ["features.stats"])
      const bad = { document: { features: { nonsense: true } } }
      assert.include(yield* errorOf(client, "config_diff", bad), "features.nonsense")
      // Larger than a body of most endpoints.
      const large = { document: { ...document, nonsense: "x".repeat(2 * http.bodyMaxBytes) } }
      assert.include(yield* errorOf(client, "config_diff", large), "nonsense")
      assert.include(yield* errorOf(client, "config_push", { document }), "configVersion")
      const [newest] = [at(yield* resultOf(client, "config_versions"), "versions", 0)]
      assert.strictEqual(at(newest, "configVersion"), configVersion + 1)
    })
  )

  it.effect("accepts a secret key only, from no page, and one valid message a request", () =>
    Effect.gen(function* () {
      const { development } = yield* makeTenants
      const url = yield* addressOfNode
      const send = (headers: Readonly<Record<string, string>>, body: unknown) =>
        request(`${url}/mcp`, {
          method: "POST",
          headers: { accept: "application/json, text/event-stream", ...headers },
          body
        })
      const ping = { jsonrpc: "2.0", id: 1, method: "ping" }
      const key = { "x-svc-key": development.secretKey }
      assert.deepStrictEqual((yield* send(key, ping)).body, { jsonrpc: "2.0", id: 1, result: {} })
      for (const headers of [
        {},
        { "x-svc-key": development.publishableKey },
        { "x-svc-key": "sk_x" }
      ]) {
        const refused = yield* send(headers, ping)
        assert.strictEqual(at(refused.body, "error", "code"), "invalid_key")
        assert.match(refused.headers.get("www-authenticate") ?? "", /^Bearer realm=/)
      }
      const page = yield* send({ ...key, origin: "https://evil.example" }, ping)
      assert.strictEqual(at(page.body, "error", "code"), "origin_not_allowed")
      const unknown = yield* send(key, { ...ping, method: "tools/destroy" })
      assert.strictEqual(at(unknown.body, "error", "code"), -32601)
      const batch = yield* send(key, [ping])
      assert.strictEqual(at(batch.body, "error", "code"), -32700)
      const none = yield* send(key, { ...ping, method: "tools/call", params: { name: "toString" } })
      assert.strictEqual(at(none.body, "error", "code"), -32602)
    })
  )

  it.effect("refuses arguments that no request can carry, as others that are wrong", () =>
    Effect.gen(function* () {
      const { development } = yield* makeTenants
      const url = yield* addressOfNode
      const client = yield* overHttp([url], { "x-svc-key": development.secretKey })
      const answer = yield* errorOf(client, "player_get", { playerId: "\ud800" })
      assert.include(answer, "invalid_request")
      // More levels than a recursive writer of JSON can enter: the text is sent as it is.
      const levels = 200_000
      const given = `{"document":${"[".repeat(levels)}${"]".repeat(levels)}}`
      const response = yield* Effect.promise(async () => {
        const sent = await fetch(`${url}/mcp`, {
          method: "POST",
          headers: { "x-svc-key": development.secretKey, "content-type": "application/json" },
          body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"config_diff","arguments":${given}}}`
        })
        return sent.json() as Promise<unknown>
      })
      assert.isTrue(at(response, "result", "isError"), JSON.stringify(response))
      assert.include(JSON.stringify(response), "invalid_request")
    })
  )

  it.effect("serves the revision of 2026, which has no initialize", () =>
    Effect.gen(function* () {
      const { development } = yield* makeTenants
      const url = yield* addressOfNode
      const send = (method: string, params: Readonly<Record<string, unknown>>) =>
        request(`${url}/mcp`, {
          method: "POST",
          headers: {
            accept: "application/json, text/event-stream",
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": method,
            ...(typeof params["name"] === "string" ? { "mcp-name": params["name"] } : {}),
            "x-svc-key": development.secretKey
          },
          body: {
            jsonrpc: "2.0",
            id: 1,
            method,
            params: {
              ...params,
              _meta: {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
                "io.modelcontextprotocol/clientCapabilities": {}
              }
            }
          }
        })
      const listed = yield* send("tools/list", {})
      assert.include(JSON.stringify(listed.body), "players_search")
      const playerId = yield* makePlayer(development, "Of 2026")
      const ban = { name: "player_ban", arguments: { playerId, reason: "spam" } }
      const banned = yield* send("tools/call", ban)
      assert.isTrue(
        at(banned.body, "result", "structuredContent", "player", "banned"),
        JSON.stringify(banned.body)
      )
      const none = yield* send("tools/call", { ...ban, arguments: { playerId: "pl_none" } })
      assert.include(JSON.stringify(none.body), "player_not_found")
    })
  )
})
