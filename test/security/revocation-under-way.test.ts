/**
 * What lasts ends with its key or its developer's session on two runners, wherever either ends: uploads of
 * apps, log lines that are followed, and versions of functions that are about to start.
 *
 * @module-tag long
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { at, configure, request, type TestTarget } from "#testing/players"
import { begin, type Headers } from "../support/drawn-out.ts"
import { deploymentOf, enable } from "../support/function-calls.ts"
import { create, sha256 } from "../support/hosting.ts"
import { makeOwnProject } from "../support/own-project.ts"
import { live } from "../support/security/security-harness.ts"
import { TwoRunners } from "../support/two-runners.ts"

/** Credentials of a project, what they may call, and how they end. */
interface Access {
  readonly name: string
  readonly headers: Headers
  /** Below these paths of a runner are hosting and functions. */
  readonly hosting: string
  readonly functions: string
  readonly end: Effect.Effect<unknown>
}

/** A project on the first runner, with a further key of it and a further session of its developer. */
const setUp = Effect.fnUntraced(function* (email: string) {
  const { at1, at2 } = yield* TwoRunners
  const { newKey, project, target } = yield* makeOwnProject(at1.url, email)
  yield* configure(target, { features: { hosting: true } })
  yield* enable(target)
  const { plain, revoke } = yield* newKey("secret")
  const body = { email, password: "correct horse" }
  const login = yield* request(`${at1.url}/v1/developers/login`, { body })
  const session = { authorization: `Bearer ${String(at(login.body, "token"))}` }
  const environment = `${new URL(project).pathname}/environments/development`
  const key: Access = {
    name: "key",
    headers: { "x-svc-key": plain },
    hosting: "/v1",
    functions: "/v1/admin/functions",
    end: revoke
  }
  const developer: Access = {
    name: "session",
    headers: session,
    hosting: environment,
    functions: `${environment}/functions`,
    end: request(`${at1.url}/v1/developers/logout`, { method: "POST", headers: session })
  }
  return { target, runners: [at1.url, at2.url], accesses: [key, developer] }
})

/** Follows log lines; the outcome is how the response ends. */
const follow = Effect.fnUntraced(function* (url: string, { functions, headers }: Access) {
  const response = yield* Effect.promise(() =>
    fetch(`${url}${functions}/logs?follow=true`, { headers })
  )
  assert.strictEqual(response.status, 200)
  const outcome = response.text().then(
    () => "whole",
    () => "cut"
  )
  return Effect.promise(() => outcome)
})

/** Begins to upload a file that a deployment waits for. */
const beginUpload = Effect.fnUntraced(function* (
  url: string,
  { headers, hosting, name }: Access,
  target: TestTarget
) {
  const content = `<!doctype html><p>${name} at ${url}`
  const created = yield* create(target, { "index.html": content })
  assert.strictEqual(created.status, 200)
  const { outcome } = yield* begin(
    `${url}${hosting}/blobs/${sha256(content)}`,
    "PUT",
    headers,
    content
  )
  const stillMissing = Effect.map(
    create(target, { "index.html": content }),
    ({ body }) => at(body, "missing", "length") === 1
  )
  return { outcome, stillMissing }
})

/** Takes longer than a second to start. */
const slowCode = `
  const end = Date.now() + 1500
  while (Date.now() < end) {}
  export default { fetch: () => new Response("hello") }`

layer(TwoRunners.layerWith({ SVC_SIGNUPS: "open" }), live)("what lasts on two runners", (it) => {
  it.effect("cuts uploads and followed logs on two runners when their key or session ends", () =>
    Effect.gen(function* () {
      const { accesses, runners, target } = yield* setUp("dev-1@example.com")
      for (const access of accesses) {
        const logs = yield* Effect.forEach(runners, (url) => follow(url, access))
        const uploads = yield* Effect.forEach(runners, (url) => beginUpload(url, access, target))
        yield* access.end
        for (const outcome of logs) assert.strictEqual(yield* outcome, "cut", access.name)
        for (const { outcome, stillMissing } of uploads) {
          assert.strictEqual(yield* outcome, 401, access.name)
          assert.isTrue(yield* stillMissing, access.name)
        }
      }
    })
  )

  it.effect("makes no version of functions live after its key or session", () =>
    Effect.gen(function* () {
      const { accesses, runners, target } = yield* setUp("dev-2@example.com")
      for (const access of accesses) {
        const deploying = yield* Effect.forEach(runners, (url) =>
          Effect.gen(function* () {
            const path = `${url}${access.functions}/deployments`
            const text = JSON.stringify(deploymentOf(slowCode))
            const { finish, outcome } = yield* begin(path, "POST", access.headers, text)
            yield* finish
            return yield* Effect.forkChild(outcome)
          })
        )
        yield* access.end
        for (const deployment of deploying) {
          assert.strictEqual(yield* Fiber.join(deployment), 401, access.name)
        }
      }
      const { body } = yield* request(`${target.url}/v1/admin/functions`, {
        headers: { "x-svc-key": target.secretKey }
      })
      assert.deepStrictEqual([at(body, "deployed"), at(body, "version")], [false, null])
    })
  )
})
