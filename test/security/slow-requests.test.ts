/** Requests that clients draw out end with their credentials: logs that are followed, uploads, and bodies. */
import { request as send } from "node:http"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { at, configure, request } from "#testing/players"
import { enable } from "../support/function-calls.ts"
import { create, sha256 } from "../support/hosting.ts"
import {
  addressOfNode,
  makeDeveloper,
  makeTenantsOf,
  nodeWith,
  SharedDatabase
} from "../support/http/stack.ts"

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
  return { target, url, secretKey: String(at(made.body, "plain")), revoke }
})

/** A request whose body the service has begun to read; `finish` sends the rest of it. */
const begin = (url: string, method: string, secretKey: string, [first, rest]: [string, string]) =>
  Effect.callback<{
    readonly finish: Effect.Effect<void>
    readonly outcome: Effect.Effect<number | "cut">
  }>((resume) => {
    const headers = {
      "x-svc-key": secretKey,
      "content-type": "application/json",
      "content-length": `${Buffer.byteLength(first + rest)}`,
      expect: "100-continue"
    }
    const sent = send(url, { method, headers })
    const outcome = new Promise<number | "cut">((resolve) => {
      sent.on("error", () => resolve("cut"))
      sent.on("response", (answer) => {
        answer.resume()
        resolve(answer.statusCode ?? 0)
      })
    })
    sent.on("continue", () => {
      sent.write(first)
      const finish = Effect.sync(() => void sent.end(rest))
      resume(Effect.succeed({ finish, outcome: Effect.promise(() => outcome) }))
    })
    sent.flushHeaders()
  })

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
      const config = yield* begin(path, "PUT", secretKey, [document.slice(0, 9), document.slice(9)])
      yield* revoke
      yield* TestClock.adjust("2 seconds")
      yield* config.finish
      assert.strictEqual(yield* config.outcome, 408)
      assert.deepStrictEqual(yield* current, before)
    })
  )

  it.effect("is whole when its key still counts", () =>
    Effect.gen(function* () {
      const { secretKey, url } = yield* setUp
      const parts: [string, string] = [document.slice(0, 9), document.slice(9)]
      const config = yield* begin(`${url}/v1/config`, "PUT", secretKey, parts)
      yield* TestClock.adjust("2 seconds")
      yield* config.finish
      assert.strictEqual(yield* config.outcome, 200)
    })
  )

  it.effect("is cut within seconds when it is an upload whose key is revoked", () =>
    Effect.gen(function* () {
      const { revoke, secretKey, target, url } = yield* setUp
      const content = "<!doctype html><p>Hello"
      yield* create(target, { "index.html": content })
      const parts: [string, string] = [content.slice(0, 9), content.slice(9)]
      const blob = yield* begin(`${url}/v1/blobs/${sha256(content)}`, "PUT", secretKey, parts)
      yield* revoke
      yield* TestClock.adjust("2 seconds")
      assert.notStrictEqual(yield* blob.outcome, 200)
    })
  )

  it.effect("is cut within seconds when it follows log lines with a key that is revoked", () =>
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
