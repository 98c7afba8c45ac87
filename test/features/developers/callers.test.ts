/** Developers as callers: the same handlers serve secret keys and project members. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { DeveloperSessions } from "#server/features/developers/sessions"
import { at, request } from "#testing/players"
import {
  addressOfNode,
  makeDeveloper,
  makeTenantsOf,
  nodeWith,
  SharedDatabase
} from "../../support/http-stack.ts"
import { codeOf } from "../../support/bodies.ts"

const Node = nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer))

/** GET endpoints that exist for secret keys and for project members. */
const paths = ["features", "integrity/webhook-secret"] as const

const setUp = Effect.gen(function* () {
  const url = yield* addressOfNode
  const developer = yield* makeDeveloper
  const tenants = yield* makeTenantsOf(developer.developerId)
  const project = `${url}/v1/projects/${tenants.projectId}`
  return { url, developer, project, ...tenants }
})

layer(Node)("developers as callers", (it) => {
  it.effect("returns the same response to a secret key and to a project member", () =>
    Effect.gen(function* () {
      const { developer, development, production, project, url } = yield* setUp
      for (const path of paths) {
        for (const [env, { secretKey }] of Object.entries({ development, production })) {
          const headers = { "x-svc-key": secretKey }
          const byKey = yield* request(`${url}/v1/admin/${path}`, { headers })
          const { headers: session } = developer
          const byMember = yield* request(`${project}/environments/${env}/${path}`, {
            headers: session
          })
          assert.strictEqual(byKey.status, 200)
          assert.deepStrictEqual(byMember.body, byKey.body)
        }
      }
    })
  )

  it.effect("records the developer of a push, whose document a key can read", () =>
    Effect.gen(function* () {
      const { developer, development, project, url } = yield* setUp
      const config = `${project}/environments/development/config`
      const document = { version: 1, features: { saves: true } }
      const pushed = yield* request(config, {
        method: "PUT",
        headers: developer.headers,
        body: document
      })
      assert.strictEqual(at(pushed.body, "configVersion"), 1)
      const { body } = yield* request(`${url}/v1/config`, {
        headers: { "x-svc-key": development.secretKey }
      })
      assert.deepStrictEqual(body, document)
      const versions = yield* request(`${config}/versions`, developer)
      assert.strictEqual(at(versions.body, "versions", 0, "pushedBy"), developer.developerId)
      const first = yield* request(`${config}/versions/1`, developer)
      assert.deepStrictEqual(first.body, document)
    })
  )

  it.effect(
    "answers 404 to a developer of another project, like for a project that does not exist",
    () =>
      Effect.gen(function* () {
        const { developer, project, url } = yield* setUp
        const stranger = yield* makeDeveloper
        const foreign = yield* request(`${project}/environments/development/features`, stranger)
        const missing = [
          `${url}/v1/projects/prj_00000000000000000000000000/environments/development/features`,
          `${url}/v1/projects/x/environments/development/features`,
          `${project}/environments/staging/features`,
          `${project}/environments/Development/features`,
          `${project}/environments/%00/features`
        ]
        for (const path of missing) {
          const answer = yield* request(path, developer)
          assert.strictEqual(answer.status, 404, path)
          assert.deepStrictEqual(answer.body, foreign.body)
        }
        assert.strictEqual(codeOf(foreign), "not_found")
      })
  )

  it.effect("rejects ended sessions before it checks membership", () =>
    Effect.gen(function* () {
      const { developer, development, project } = yield* setUp
      const features = `${project}/environments/development/features`
      const others = [
        "",
        "Bearer",
        "Bearer ",
        "Bearer kds_",
        `Bearer ${developer.token.slice(0, -1)}`,
        `Bearer ${developer.token}A`,
        `Basic ${developer.token}`,
        `Bearer kds_${"A".repeat(43)}`,
        `Bearer ${development.secretKey}`
      ]
      for (const authorization of others) {
        const answer = yield* request(features, { headers: { authorization } })
        assert.strictEqual(answer.status, 401, authorization)
        assert.strictEqual(codeOf(answer), "unauthorized")
      }
      const headers = { "x-svc-key": development.secretKey }
      assert.strictEqual(codeOf(yield* request(features, { headers })), "unauthorized")
    })
  )
})

layer(Node)("a developer's session", (it) => {
  it.effect("expires a developer's session 30 days after its last use", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const sessions = yield* DeveloperSessions
      const { developerId, token } = yield* makeDeveloper
      const after = Effect.fnUntraced(function* (days: number) {
        yield* sql`update developer_sessions set expires_at = expires_at - interval '1 day' * ${days}
          where developer_id = ${developerId}`
        return yield* Effect.match(sessions.verify(token), {
          onSuccess: (developer) => developer.developerId,
          onFailure: ({ _tag }) => _tag
        })
      })
      for (const days of [29, 29, 0, 29]) assert.strictEqual(yield* after(days), developerId)
      assert.strictEqual(yield* after(30), "unauthorized")
    })
  )

  it.effect("ends a developer's session 180 days after the sign-in, however often it is used", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const sessions = yield* DeveloperSessions
      const { developerId, token } = yield* makeDeveloper
      /** Days that the session has left after a use so many days later. */
      const leftAfter = Effect.fnUntraced(function* (days: number) {
        yield* sql`update developer_sessions set expires_at = expires_at - interval '1 day' * ${days},
          created_at = created_at - interval '1 day' * ${days}
          where developer_id = ${developerId}`
        const used = yield* Effect.exit(sessions.verify(token))
        if (used._tag === "Failure") return "ended"
        const [row] = yield* sql<{ readonly days: number }>`
          select (extract(epoch from expires_at) / 86400)::float8 as days
          from developer_sessions where developer_id = ${developerId}`
        return row?.days
      })
      const left = yield* Effect.forEach([20, 25, 25, 25, 25, 25, 25, 9], leftAfter)
      assert.deepStrictEqual(left, [30, 30, 30, 30, 30, 30, 10, 1])
      assert.strictEqual(yield* leftAfter(1), "ended")
      // Not even a later expiry in the database, which an older release may have written, extends it.
      yield* sql`update developer_sessions set expires_at = now() + interval '1 year'
        where developer_id = ${developerId}`
      assert.strictEqual(yield* leftAfter(0), "ended")
    })
  )
})
