/** A project of a new developer, for tests that revoke keys. Requires `SVC_SIGNUPS=open`. */
import { Effect } from "effect"
import { at, request, type TestTarget } from "#testing/players"

const text = (value: unknown, ...path: ReadonlyArray<string | number>) => String(at(value, ...path))

/** A project with its development environment, and new keys of it. */
export const makeOwnProject = Effect.fnUntraced(function* (url: string, email: string) {
  const signUp = { email, password: "correct horse" }
  const signedUp = yield* request(`${url}/v1/developers/signup`, { body: signUp })
  const headers = { authorization: `Bearer ${text(signedUp.body, "token")}` }
  const created = yield* request(`${url}/v1/projects`, { headers, body: { name: "Revoked" } })
  const project = `${url}/v1/projects/${text(created.body, "project", "id")}`
  const target: TestTarget = {
    url,
    publishableKey: text(created.body, "plainKeys", "development", "publishableKey"),
    secretKey: text(created.body, "plainKeys", "development", "secretKey")
  }
  const newKey = Effect.fnUntraced(function* (kind: "publishable" | "secret") {
    const path = `${project}/environments/development/keys`
    const { body } = yield* request(path, { headers, body: { kind } })
    const id = text(body, "key", "id")
    const revoke = request(`${project}/keys/${id}`, { method: "DELETE", headers })
    return { id, plain: text(body, "plain"), revoke }
  })
  return { headers, newKey, project, target }
})
