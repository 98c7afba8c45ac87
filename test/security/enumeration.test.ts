/**
 * Account enumeration (ASVS 6): for a known and an unknown email, the service sends the same response and
 * does the same work, in SQL statements and password hashes. So timing reveals nothing either.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { guest, request, type TestResponse } from "#testing/players"
import { ask as developerAsk } from "../support/developer-requests.ts"
import { callsOf, emailConfig } from "../support/email/email-harness.ts"
import { Inbox } from "../support/email/inbox.ts"
import {
  addressOfNode,
  configure,
  makeDeveloper,
  makeTenants,
  makeTenantsOf,
  nodeWith,
  SharedDatabase
} from "../support/http-stack.ts"
import { SpanRecorderLive, workOf } from "../support/security/watched.ts"

const Node = Layer.unwrap(
  Effect.map(Inbox, ({ url }) => nodeWith({ SMTP_URL: url, SVC_SIGNUPS: "open" }))
).pipe(
  Layer.provideMerge(SpanRecorderLive),
  Layer.provideMerge(Layer.mergeAll(Inbox.layer, SharedDatabase.layer))
)

/** The parts of a response by which a caller could distinguish two. */
const visibleParts = ({ body, headers, status }: TestResponse) => ({
  status,
  body,
  headers: Array.from(headers).filter(([name]) => name !== "date" && name !== "x-request-id")
})

const makeFixture = Effect.gen(function* () {
  const url = yield* addressOfNode
  const { development, production } = yield* makeTenants
  for (const tenant of [development, production]) yield* configure(tenant, emailConfig)
  const calls = callsOf(url, development)
  const traced = (path: string, body: unknown) =>
    workOf((headers) => calls.post(path, body, undefined, headers))
  return { ...calls, production: callsOf(url, production), traced }
})

layer(Node)("account enumeration (API2, ASVS 6)", (it) => {
  it.effect(
    "a failed login of a known and an unknown address get the same response after the same work",
    () =>
      Effect.gen(function* () {
        const { production, signUp, traced } = yield* makeFixture
        yield* signUp("ada@example.com")
        yield* production.signUp("elsewhere@example.com")
        const password = "another password"
        const wrong = yield* traced("email/login", { email: "ada@example.com", password })
        assert.strictEqual(wrong.answer.status, 401)
        assert.strictEqual(wrong.passwords, 1)
        assert.isNotEmpty(wrong.steps.filter((step) => step.includes("select")))
        for (const email of ["nobody@example.com", "elsewhere@example.com"]) {
          const unknown = yield* traced("email/login", { email, password })
          assert.deepStrictEqual(visibleParts(unknown.answer), visibleParts(wrong.answer))
          assert.deepStrictEqual(unknown.steps, wrong.steps)
        }
      })
  )

  it.effect(
    "a reset link for a known and an unknown address get the same response after the same work",
    () =>
      Effect.gen(function* () {
        const { signUp, traced } = yield* makeFixture
        const inbox = yield* Inbox
        yield* signUp("bea@example.com")
        yield* inbox.next("bea@example.com")
        const known = yield* traced("password/forgot", { email: "bea@example.com" })
        const unknown = yield* traced("password/forgot", { email: "nobody@example.com" })
        assert.strictEqual(known.answer.status, 200)
        assert.deepStrictEqual(visibleParts(unknown.answer), visibleParts(known.answer))
        assert.deepStrictEqual(unknown.steps, known.steps)
        assert.isNotEmpty(known.steps.filter((step) => step.includes("mails")))
      })
  )

  it.effect("a sign-up reveals an account only by its throttled response, not by its work", () =>
    Effect.gen(function* () {
      const { signUp, traced } = yield* makeFixture
      yield* signUp("cara@example.com")
      const password = "correct horse battery"
      const taken = yield* traced("email/signup", { email: "cara@example.com", password })
      const free = yield* traced("email/signup", { email: "dora@example.com", password })
      assert.deepStrictEqual([taken.answer.status, free.answer.status], [409, 200])
      assert.deepStrictEqual([taken.passwords, free.passwords], [1, 1])
    })
  )

  it.effect("a failed developer login gets the same response after the same work", () =>
    Effect.gen(function* () {
      const url = yield* addressOfNode
      const password = "correct horse battery"
      const email = "dev@example.com"
      yield* request(`${url}/v1/developers/signup`, { body: { email, password } })
      const external = yield* makeDeveloper
      const logIn = (who: string) =>
        workOf((headers) =>
          request(`${url}/v1/developers/login`, {
            headers,
            body: { email: who, password: "another password" }
          })
        )
      const wrong = yield* logIn(email)
      assert.strictEqual(wrong.answer.status, 401)
      assert.strictEqual(wrong.passwords, 1)
      for (const who of ["nobody@example.com", external.email]) {
        const other = yield* logIn(who)
        assert.deepStrictEqual(visibleParts(other.answer), visibleParts(wrong.answer))
        assert.deepStrictEqual(other.steps, wrong.steps)
      }
    })
  )
})

layer(Node)("foreign resources (API1)", (it) => {
  it.effect("foreign resources cost the same work as missing ones", () =>
    Effect.gen(function* () {
      const url = yield* addressOfNode
      const developer = yield* makeDeveloper
      const stranger = yield* makeDeveloper
      const { development, production, projectId } = yield* makeTenantsOf(developer.developerId)
      const foreign = yield* makeTenantsOf(stranger.developerId)
      const inProduction = yield* guest({ url, ...production })
      const inForeignProject = yield* guest({ url, ...foreign.development })
      const unknownSuffix = "0".repeat(26)
      const players = [`pl_${unknownSuffix}`, inProduction.id, inForeignProject.id]
      const projects = [`prj_${unknownSuffix}`, foreign.projectId]
      const server = (path: string, body: unknown) => (headers: object) =>
        request(`${url}/v1/admin/players/${path}`, {
          method: path.endsWith("age") ? "PUT" : "POST",
          headers: { "x-svc-key": development.secretKey, ...headers },
          body
        })
      const own = (method: string, path: string) => (headers: object) =>
        developerAsk(
          { headers: { ...developer.headers, ...headers } },
          method,
          `/v1/projects/${path}`
        )
      const sets = [
        ...["ban", "unban", "export", "delete"].map((op) =>
          players.map((id) => server(`${id}/${op}`, {}))
        ),
        players.map((id) => server(`${id}/age`, { band: "teen" })),
        players.map((id) => own("GET", `${projectId}/environments/development/players/${id}`)),
        projects.map((id) => own("GET", id)),
        projects.map((id) => own("DELETE", id)),
        projects.map((id) => own("GET", `${id}/environments/development/config`)),
        projects.map((id) => own("GET", `${id}/environments/development/players`))
      ]
      for (const [index, calls] of sets.entries()) {
        // Warms the cache of API keys.
        yield* calls[0]?.({}) ?? Effect.void
        const works = yield* Effect.forEach(calls, (call) => workOf(call))
        const [random] = works
        assert.isNotEmpty(random?.steps)
        for (const { answer, steps } of works) {
          assert.strictEqual(answer.status, 404, `${index}`)
          assert.deepStrictEqual(steps, random?.steps, `${index}`)
        }
      }
    })
  )
})
