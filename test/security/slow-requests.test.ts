/**
 * Requests that last end with their credentials: logs that are followed, uploads, bodies that a client draws
 * out, versions of functions that start, and reports that a webhook verifies.
 */
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { at, configure, guest, request, type TestTarget } from "#testing/players"
import { begin, type Headers } from "../support/drawn-out.ts"
import { base64, call, enable } from "../support/function-calls.ts"
import { FakeRuntime } from "../support/function-runtime.ts"
import { create, sha256 } from "../support/hosting.ts"
import {
  addressOfNode,
  makeDeveloper,
  makeTenantsOf,
  nodeWith,
  SharedDatabase
} from "../support/http-stack.ts"
import { ban } from "../support/moderation-calls.ts"
import { developersServer, gameWith } from "../support/webhook.ts"

const Node = nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer))

/** A project with hosting and functions, a secret key of it, and the key's revocation. */
const setUp = Effect.gen(function* () {
  const url = yield* addressOfNode
  const { developerId, headers } = yield* makeDeveloper
  const { development, projectId } = yield* makeTenantsOf(developerId)
  const target = { url, ...development }
  yield* configure(target, { features: { hosting: true } })
  yield* enable(target)
  const project = `${url}/v1/projects/${projectId}`
  const path = `${project}/environments/development/keys`
  const made = yield* request(path, { headers, body: { kind: "secret" } })
  const revoke = request(`${project}/keys/${String(at(made.body, "key", "id"))}`, {
    method: "DELETE",
    headers
  })
  const logout = request(`${url}/v1/developers/logout`, { method: "POST", headers })
  return {
    target,
    url,
    secretKey: String(at(made.body, "plain")),
    revoke,
    project,
    headers,
    logout
  }
})

const keyOf = ({ publishableKey }: TestTarget): Headers => ({ "x-svc-key": publishableKey })

const document = '{"features":{"hosting":true,"saves":true}}'

layer(Node, { timeout: "60 seconds" })("a request that its client draws out", (it) => {
  it.effect("writes nothing when its key was revoked while the body came", () =>
    Effect.gen(function* () {
      const { revoke, secretKey, target, url } = yield* setUp
      const path = `${url}/v1/config`
      const current = Effect.map(
        request(path, { headers: { "x-svc-key": target.secretKey } }),
        ({ body, status }) => ({ body, status })
      )
      const before = yield* current
      assert.strictEqual(before.status, 200)
      const config = yield* begin(path, "PUT", { "x-svc-key": secretKey }, document)
      yield* revoke
      yield* TestClock.adjust("2 seconds")
      yield* config.finish
      assert.strictEqual(yield* config.outcome, 401)
      assert.deepStrictEqual(yield* current, before)
    })
  )

  it.effect("writes nothing when the developer signed out while the body came", () =>
    Effect.gen(function* () {
      const { headers, logout, project, target, url } = yield* setUp
      const path = `${project}/environments/development/config`
      const config = yield* begin(path, "PUT", headers, document)
      yield* logout
      yield* TestClock.adjust("2 seconds")
      yield* config.finish
      assert.strictEqual(yield* config.outcome, 401)
      const versions = yield* request(`${url}/v1/config/versions`, {
        headers: { "x-svc-key": target.secretKey }
      })
      assert.strictEqual(at(versions.body, "versions", "length"), 1)
    })
  )

  it.effect("changes nothing as a tool of an agent whose key was revoked while the body came", () =>
    Effect.gen(function* () {
      const { revoke, secretKey, target, url } = yield* setUp
      const { id, accessToken } = yield* guest(target)
      const params = { name: "player_ban", arguments: { playerId: id } }
      const message = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params })
      const tool = yield* begin(`${url}/mcp`, "POST", { "x-svc-key": secretKey }, message)
      yield* revoke
      yield* TestClock.adjust("2 seconds")
      yield* tool.finish
      assert.strictEqual(yield* tool.outcome, 401)
      const headers = { ...keyOf(target), authorization: `Bearer ${accessToken}` }
      const { body } = yield* request(`${url}/v1/players/me/sanctions`, { headers })
      assert.deepStrictEqual(at(body, "sanctions"), [])
    })
  )

  it.effect("writes nothing for a player who was banned while the body came", () =>
    Effect.gen(function* () {
      const { target, url } = yield* setUp
      yield* configure(target, {
        features: { hosting: true, saves: true, stats: true },
        stats: [{ key: "kills" }],
        share: { links: { enabled: true }, tracking: { enabled: true } }
      })
      const { id, accessToken } = yield* guest(target)
      const headers = { ...keyOf(target), authorization: `Bearer ${accessToken}` }
      const bodies = {
        "PUT /v1/saves/slot": { data: "after the ban" },
        "POST /v1/stats": { stats: { kills: 1 } },
        "PATCH /v1/players/me": { displayName: "After the ban" },
        "POST /v1/share/links": { kind: "plain" },
        "POST /v1/share/visits": { shareId: "AAAAAAAAAA", landed: true }
      }
      const begun = yield* Effect.forEach(Object.entries(bodies), ([endpoint, body]) => {
        const [method = "", path = ""] = endpoint.split(" ")
        return begin(`${url}${path}`, method, headers, JSON.stringify(body))
      })
      yield* ban(target, id)
      yield* TestClock.adjust("2 seconds")
      for (const { finish } of begun) yield* finish
      const outcomes = yield* Effect.forEach(begun, ({ outcome }) => outcome)
      assert.deepStrictEqual(outcomes, [403, 403, 403, 403, 403])
    })
  )

  it.effect("accepts the appeal of a banned player whose client sends it slowly", () =>
    Effect.gen(function* () {
      const { target, url } = yield* setUp
      const { id, accessToken } = yield* guest(target)
      const headers = { ...keyOf(target), authorization: `Bearer ${accessToken}` }
      yield* ban(target, id)
      const { body } = yield* request(`${url}/v1/players/me/sanctions`, { headers })
      const sanction = String(at(body, "sanctions", 0, "id"))
      const path = `${url}/v1/players/me/sanctions/${sanction}/appeal`
      const appeal = yield* begin(path, "POST", headers, JSON.stringify({ message: "Please." }))
      yield* TestClock.adjust("2 seconds")
      yield* appeal.finish
      assert.strictEqual(yield* appeal.outcome, 201)
    })
  )

  it.effect("completes a slow request whose key still counts", () =>
    Effect.gen(function* () {
      const { secretKey, url } = yield* setUp
      const config = yield* begin(`${url}/v1/config`, "PUT", { "x-svc-key": secretKey }, document)
      yield* TestClock.adjust("2 seconds")
      yield* config.finish
      assert.strictEqual(yield* config.outcome, 200)
    })
  )

  it.effect("cuts a slow upload within seconds when its key is revoked", () =>
    Effect.gen(function* () {
      const { revoke, secretKey, target, url } = yield* setUp
      const content = "<!doctype html><p>Hello"
      yield* create(target, { "index.html": content })
      const path = `${url}/v1/blobs/${sha256(content)}`
      const blob = yield* begin(path, "PUT", { "x-svc-key": secretKey }, content)
      yield* revoke
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(yield* blob.outcome, 401)
    })
  )

  it.effect("cuts a client that follows log lines within seconds when its key is revoked", () =>
    Effect.gen(function* () {
      const { revoke, secretKey, url } = yield* setUp
      const response = yield* Effect.promise(() =>
        fetch(`${url}/v1/admin/functions/logs?follow=true`, { headers: { "x-svc-key": secretKey } })
      )
      assert.strictEqual(response.status, 200)
      const outcome = response.text().catch(() => "cut")
      yield* revoke
      // A line break that shows that the connection is alive comes later.
      for (const _ of [1, 2, 3]) yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* Effect.promise(() => outcome), "cut")
    })
  )
})

layer(Node, { timeout: "60 seconds" })("a request that waits for others", (it) => {
  it.effect("makes no version of functions live when its key was revoked meanwhile", () =>
    Effect.gen(function* () {
      const { revoke, secretKey, target } = yield* setUp
      const runtime = yield* FakeRuntime
      const started = yield* Deferred.make<void>()
      const go = yield* Deferred.make<void>()
      runtime.starting = Effect.andThen(Deferred.succeed(started, undefined), Deferred.await(go))
      const modules = [{ name: "main.js", type: "esm", content: base64("export default {}") }]
      const deployment = { mainModule: "main.js", modules }
      const deploying = yield* Effect.forkChild(
        call({ ...target, secretKey }, "POST", "/deployments", deployment)
      )
      yield* Deferred.await(started)
      yield* revoke
      yield* TestClock.adjust("2 seconds")
      yield* Deferred.succeed(go, undefined)
      const { body, status } = yield* Fiber.join(deploying)
      assert.deepStrictEqual([status, at(body, "error", "code")], [401, "invalid_key"])
      assert.strictEqual(at((yield* call(target, "GET")).body, "deployed"), false)
    })
  )

  it.effect("counts no stats of a player who was banned while the webhook looked at them", () =>
    Effect.gen(function* () {
      const { target, url } = yield* setUp
      const asked = yield* Deferred.make<() => void>()
      const developer = yield* developersServer((response) => {
        const approve = () => void response.end(JSON.stringify({ approve: true }))
        Deferred.doneUnsafe(asked, Effect.succeed(approve))
      })
      yield* configure(target, gameWith({ url: developer.url, timeoutMs: 5000 }))
      const { id, accessToken } = yield* guest(target)
      const headers = { ...keyOf(target), authorization: `Bearer ${accessToken}` }
      const stats = { kills: 1 }
      const reporting = yield* Effect.forkChild(
        request(`${url}/v1/stats`, { headers, body: { stats } })
      )
      const approve = yield* Deferred.await(asked)
      yield* ban(target, id)
      yield* TestClock.adjust("2 seconds")
      approve()
      const { body, status } = yield* Fiber.join(reporting)
      assert.deepStrictEqual([status, at(body, "error", "code")], [403, "player_banned"])
      assert.deepStrictEqual((yield* request(`${url}/v1/stats`, { headers })).body, { stats: {} })
    })
  )
})
