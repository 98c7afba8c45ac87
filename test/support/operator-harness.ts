/**
 * A project with targets for every operator action, and all kinds of callers: players, keys, developers
 * of this project and of another one. Everything is created over HTTP.
 */
import { Effect } from "effect"
import { featureTable } from "#rpc/config-document/features"
import { TestApp } from "#testing/app"
import {
  at,
  configure,
  guest,
  newPlayer,
  request,
  type TestResponse,
  type TestTarget
} from "#testing/players"

type Headers = Readonly<Record<string, string>>

const password = "correct horse battery"

const ok = (answer: TestResponse): Effect.Effect<unknown> =>
  answer.status < 300
    ? Effect.succeed(answer.body)
    : Effect.die(new Error(`${answer.status} ${JSON.stringify(answer.body)}`))

/** Reads a string from a response; dies when it is missing. */
export const text = (body: unknown, ...path: ReadonlyArray<string | number>): string => {
  const found = at(body, ...path)
  if (typeof found === "string") return found
  throw new Error(`No text at ${path.join(".")} of ${JSON.stringify(body)}`)
}

const bearer = (token: string): Headers => ({ authorization: `Bearer ${token}` })

/** A developer account with its session. */
export interface TestDeveloper {
  readonly id: string
  readonly email: string
  readonly headers: Headers
}

/** Signs up a developer. */
export const signUp = Effect.fnUntraced(function* (name: string) {
  const { url } = yield* TestApp
  const email = `${name}@example.com`
  const body = yield* Effect.flatMap(
    request(`${url}/v1/developers/signup`, { body: { email, password, name } }),
    ok
  )
  const developer: TestDeveloper = {
    id: text(body, "developer", "id"),
    email,
    headers: bearer(text(body, "token"))
  }
  return developer
})

/** Opens another session of a developer. */
const signIn = Effect.fnUntraced(function* ({ email }: TestDeveloper) {
  const { url } = yield* TestApp
  const login = request(`${url}/v1/developers/login`, { body: { email, password } })
  return bearer(text(yield* Effect.flatMap(login, ok), "token"))
})

/** A config with all features enabled. */
export const everything = {
  version: 1,
  features: Object.fromEntries(Object.keys(featureTable).map((name) => [name, true])),
  stats: [{ key: "score" }],
  share: { links: { enabled: true } },
  multiplayer: { modes: [{ key: "duel" }] }
}

/** Creates a project with all features enabled in both environments. */
export const makeProject = Effect.fnUntraced(function* ({ headers }: TestDeveloper) {
  const { url } = yield* TestApp
  const created = yield* Effect.flatMap(
    request(`${url}/v1/projects`, { headers, body: { name: "Walk" } }),
    ok
  )
  const target = (env: "development" | "production"): TestTarget => ({
    url,
    publishableKey: text(created, "plainKeys", env, "publishableKey"),
    secretKey: text(created, "plainKeys", env, "secretKey")
  })
  const development = target("development")
  const production = target("production")
  yield* configure(development, everything)
  yield* configure(production, everything)
  return { projectId: text(created, "project", "id"), development, production }
})

/** Creates a key of the development environment; returns its plain text and id. */
export const makeKey = Effect.fnUntraced(function* (
  { headers }: TestDeveloper,
  projectId: string,
  kind: "publishable" | "secret"
) {
  const { url } = yield* TestApp
  const made = request(`${url}/v1/projects/${projectId}/environments/development/keys`, {
    headers,
    body: { kind }
  })
  const body = yield* Effect.flatMap(made, ok)
  return { keyId: text(body, "key", "id"), plain: text(body, "plain") }
})

/** Revokes a key. */
const revoke = Effect.fnUntraced(function* (
  { headers }: TestDeveloper,
  projectId: string,
  keyId: string
) {
  const { url } = yield* TestApp
  const path = `${url}/v1/projects/${projectId}/keys/${keyId}`
  yield* Effect.flatMap(request(path, { method: "DELETE", headers }), ok)
})

/** Creates a banned player with an appeal. */
export const makeAppeal = Effect.fnUntraced(function* (target: TestTarget) {
  const player = yield* guest(target)
  const ban = request(`${target.url}/v1/admin/players/${player.id}/ban`, {
    headers: { "x-svc-key": target.secretKey },
    body: { reason: "walk" }
  })
  yield* Effect.flatMap(ban, ok)
  const headers = { "x-svc-key": target.publishableKey, ...bearer(player.accessToken) }
  const sanctions = yield* Effect.flatMap(
    request(`${target.url}/v1/players/me/sanctions`, { headers }),
    ok
  )
  const sanctionId = text(sanctions, "sanctions", 0, "id")
  const path = `${target.url}/v1/players/me/sanctions/${sanctionId}/appeal`
  yield* Effect.flatMap(request(path, { headers, body: { message: "Please." } }), ok)
  const { body } = yield* request(`${target.url}/v1/admin/appeals?status=open`, {
    headers: { "x-svc-key": target.secretKey }
  })
  const appeals = at(body, "appeals")
  const own = Array.isArray(appeals)
    ? appeals.find((it) => at(it, "sanctionId") === sanctionId)
    : undefined
  return { player, sanctionId, appealId: text(own, "id") }
})

/** Opens a room, which lives as long as the scope. */
export const makeRoom = Effect.fnUntraced(function* (target: TestTarget) {
  const host = yield* Effect.orDie(newPlayer(target))
  const reply = yield* Effect.orDie(host.socket.request({ t: "create", mode: "duel" }))
  return text(reply, "data", "roomId")
})

/** Creates two projects with players, keys and developers. `name` makes their names unique. */
export const makeTenantFixtures = Effect.fnUntraced(function* (name: string) {
  const { url } = yield* TestApp
  const nameOf = (who: string) => `${who}-${name}`
  const developer = yield* signUp(nameOf("member"))
  const otherDeveloper = yield* signUp(nameOf("stranger"))
  const idleDeveloper = yield* signUp(nameOf("idle"))
  const signedOut = yield* signIn(developer)
  yield* request(`${url}/v1/developers/logout`, { method: "POST", headers: signedOut })
  const elsewhere = yield* makeProject(otherDeveloper)
  const project = yield* makeProject(developer)
  const { development, production, projectId } = project
  const revoked: Array<Headers> = []
  for (const kind of ["publishable", "secret"] as const) {
    const key = yield* makeKey(developer, projectId, kind)
    yield* revoke(developer, projectId, key.keyId)
    revoked.push({ "x-svc-key": key.plain })
  }
  const player = yield* guest(development)
  const { player: bannedPlayer } = yield* makeAppeal(development)
  const otherPlayers = [yield* guest(production), yield* guest(elsewhere.development)]
  return {
    ...project,
    developer,
    otherDeveloper,
    idleDeveloper,
    signedOut,
    revoked,
    player,
    bannedPlayer,
    otherPlayers
  }
})
export type TenantFixtures = Effect.Success<ReturnType<typeof makeTenantFixtures>>
