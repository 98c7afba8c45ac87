/**
 * Who has an account is told by no answer and by no time (ASVS 6): for a known and an unknown email the
 * service says the same and does the same, statement by statement, with as many password hashes.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { type Answer, guest, request } from "#testing/players"
import { ask as developerAsk } from "../support/developer-requests.ts"
import { callsOf, withEmail } from "../support/email/email-harness.ts"
import { Inbox } from "../support/email/inbox.ts"
import {
  addressOfNode,
  configure,
  makeDeveloper,
  makeTenants,
  makeTenantsOf,
  nodeWith,
  SharedDatabase
} from "../support/http/stack.ts"
import { Watching, workOf } from "../support/security/watched.ts"

const Node = Layer.unwrap(
  Effect.map(Inbox, ({ url }) => nodeWith({ SMTP_URL: url, SVC_SIGNUPS: "open" }))
).pipe(
  Layer.provideMerge(Watching),
  Layer.provideMerge(Layer.mergeAll(Inbox.layer, SharedDatabase.layer))
)

/** What of an answer a caller can tell apart. */
const seen = ({ body, headers, status }: Answer) => ({
  status,
  body,
  headers: Array.from(headers).filter(([name]) => name !== "date" && name !== "x-request-id")
})

const makeWorld = Effect.gen(function* () {
  const url = yield* addressOfNode
  const { development, production } = yield* makeTenants
  for (const tenant of [development, production]) yield* configure(tenant, withEmail)
  const calls = callsOf(url, development)
  const watched = (path: string, body: unknown) =>
    workOf((headers) => calls.post(path, body, undefined, headers))
  return { ...calls, production: callsOf(url, production), watched }
})

layer(Node)("who has an account (API2, ASVS 6)", (it) => {
  it.effect("is not told by a failed sign-in: the same words after the same work", () =>
    Effect.gen(function* () {
      const { production, signUp, watched } = yield* makeWorld
      yield* signUp("ada@example.com")
      yield* production.signUp("elsewhere@example.com")
      const password = "another password"
      const wrong = yield* watched("email/login", { email: "ada@example.com", password })
      assert.strictEqual(wrong.answer.status, 401)
      assert.strictEqual(wrong.passwords, 1)
      assert.isNotEmpty(wrong.steps.filter((step) => step.includes("select")))
      for (const email of ["nobody@example.com", "elsewhere@example.com"]) {
        const unknown = yield* watched("email/login", { email, password })
        assert.deepStrictEqual(seen(unknown.answer), seen(wrong.answer))
        assert.deepStrictEqual(unknown.steps, wrong.steps)
      }
    })
  )

  it.effect("is not told by asking for a reset link", () =>
    Effect.gen(function* () {
      const { signUp, watched } = yield* makeWorld
      const inbox = yield* Inbox
      yield* signUp("bea@example.com")
      yield* inbox.next("bea@example.com")
      const known = yield* watched("password/forgot", { email: "bea@example.com" })
      const unknown = yield* watched("password/forgot", { email: "nobody@example.com" })
      assert.strictEqual(known.answer.status, 200)
      assert.deepStrictEqual(seen(unknown.answer), seen(known.answer))
      assert.deepStrictEqual(unknown.steps, known.steps)
      assert.isNotEmpty(known.steps.filter((step) => step.includes("mails")))
    })
  )

  it.effect("is told by a sign-up only in words, and those are throttled", () =>
    Effect.gen(function* () {
      const { signUp, watched } = yield* makeWorld
      yield* signUp("cara@example.com")
      const password = "correct horse battery"
      const taken = yield* watched("email/signup", { email: "cara@example.com", password })
      const free = yield* watched("email/signup", { email: "dora@example.com", password })
      assert.deepStrictEqual([taken.answer.status, free.answer.status], [409, 200])
      assert.deepStrictEqual([taken.passwords, free.passwords], [1, 1])
    })
  )

  it.effect("of developers is not told either", () =>
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
        assert.deepStrictEqual(seen(other.answer), seen(wrong.answer))
        assert.deepStrictEqual(other.steps, wrong.steps)
      }
    })
  )
})

layer(Node)("what is not the caller's own (API1)", (it) => {
  it.effect("costs the same work as what is not there", () =>
    Effect.gen(function* () {
      const url = yield* addressOfNode
      const developer = yield* makeDeveloper
      const stranger = yield* makeDeveloper
      const { development, production, projectId } = yield* makeTenantsOf(developer.developerId)
      const foreign = yield* makeTenantsOf(stranger.developerId)
      const beside = yield* guest({ url, ...production })
      const away = yield* guest({ url, ...foreign.development })
      const none = "0".repeat(26)
      const players = [`pl_${none}`, beside.id, away.id]
      const projects = [`prj_${none}`, foreign.projectId]
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
        // The first one after a while looks up whose key it is.
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
