/**
 * A project to be fuzzed and thrown away: a developer, two environments, players of every kind, and
 * something in each store, so that requests about real things go deep.
 */
import { Effect } from "effect"
import { featureTable } from "#rpc/config-document/features"
import { configure, guest, request, type TestResponse, type TestTarget } from "#testing/players"
import type { Chance } from "../simulation/random.ts"
import { makeAppeal, text } from "../support/operator-harness.ts"
import { Suggestions } from "./suggestions.ts"

export type Headers = Readonly<Record<string, string>>

const password = "correct horse battery"

/** Every feature on, and modes whose matches start and whose seats end within a second. */
export const everything = {
  version: 1,
  features: Object.fromEntries(Object.keys(featureTable).map((name) => [name, true])),
  stats: [{ key: "score" }, { key: "wins", aggregation: "max" }],
  multiplayer: {
    modes: [
      { key: "solo", minPlayers: 1, maxPlayers: 2, fillTimeoutSeconds: 1, reconnectSeconds: 1 },
      { key: "duel", minPlayers: 2, maxPlayers: 2, fillTimeoutSeconds: 1, reconnectSeconds: 1 },
      { key: "party", minPlayers: 2, maxPlayers: 8, fillTimeoutSeconds: 1, reconnectSeconds: 1 },
      { key: "mesh", minPlayers: 2, transport: "p2p", reconnectSeconds: 1 }
    ]
  },
  auth: { redirectUrls: ["https://game.example/*"], providers: { google: { enabled: true } } },
  share: { inAppBrowser: { enabled: true } },
  integrity: { stats: { maxSubmitsPerMinute: 600, rules: [{ stat: "score", max: 1e6 }] } }
}

/** Headers by caller: one for each access level, and some with forged or foreign credentials. */
export type Callers = Readonly<Record<string, Headers>>

export interface Tenant {
  readonly callers: Callers
  readonly suggestions: Suggestions
  /** For links that carry the key in their query. */
  readonly publishableKey: string
  /** Restores the config document. */
  readonly configured: Effect.Effect<unknown>
}

const bearer = (token: string): Headers => ({ authorization: `Bearer ${token}` })

const done = (answer: TestResponse): Effect.Effect<unknown> =>
  answer.status < 300
    ? Effect.succeed(answer.body)
    : Effect.die(new Error(`Failed to create a tenant: ${JSON.stringify(answer)}`))

/** A request that must succeed. */
const ask = (url: string, headers: Headers, body?: unknown, method?: string) =>
  Effect.flatMap(
    request(url, {
      headers,
      ...(body === undefined ? {} : { body }),
      ...(method === undefined ? {} : { method })
    }),
    done
  )

/** Signs up a developer; `email` must be unused. */
export const signUp = Effect.fnUntraced(function* (url: string, email: string) {
  const body = yield* ask(`${url}/v1/developers/signup`, {}, { email, password })
  return bearer(text(body, "token"))
})

/** Creates a project with every feature on in development, and a channel open to all. */
export const makeProject = Effect.fnUntraced(function* (url: string, developer: Headers) {
  const created = yield* ask(`${url}/v1/projects`, developer, { name: "Fuzzed" })
  const target = (env: "development" | "production"): TestTarget => ({
    url,
    publishableKey: text(created, "plainKeys", env, "publishableKey"),
    secretKey: text(created, "plainKeys", env, "secretKey")
  })
  const development = target("development")
  yield* configure(development, everything)
  const secret = { "x-svc-key": development.secretKey }
  yield* ask(`${url}/v1/realtime/channels/lobby`, secret, { open: true }, "PUT")
  return {
    projectId: text(created, "project", "id"),
    development,
    production: target("production")
  }
})

/** Creates and revokes a secret key. */
const makeRevoked = Effect.fnUntraced(function* (url: string, developer: Headers, project: string) {
  const made = yield* ask(
    `${url}/v1/projects/${project}/environments/development/keys`,
    developer,
    { kind: "secret" }
  )
  const path = `${url}/v1/projects/${project}/keys/${text(made, "key", "id")}`
  yield* ask(path, developer, undefined, "DELETE")
  return { "x-svc-key": text(made, "plain") }
})

/** Creates a tenant; `name` must be unused. */
export const makeTenant = Effect.fnUntraced(function* (
  url: string,
  otherDeveloper: Headers,
  chance: Chance,
  name: string
) {
  const developer = yield* signUp(url, `${name}@example.com`)
  const suggestions = new Suggestions(chance)
  const { development, production, projectId } = yield* makeProject(url, developer)
  const publishable = { "x-svc-key": development.publishableKey }
  const secret = { "x-svc-key": development.secretKey }
  const ada = yield* guest(development, "Ada")
  const bob = yield* guest(development)
  const away = yield* guest(production)
  const banned = yield* makeAppeal(development)
  const member = yield* ask(`${url}/v1/auth/email/signup`, publishable, {
    email: `${name}-player@example.com`,
    password
  })
  const player = { ...publishable, ...bearer(ada.accessToken) }
  yield* ask(`${url}/v1/saves/slot-1`, player, { data: { level: 3 } }, "PUT")
  yield* ask(`${url}/v1/stats`, player, { stats: { score: 3 } })
  for (const it of [ada, bob, away, banned.player]) suggestions.learnFrom(it)
  suggestions.learnFrom([member, { appealId: banned.appealId, sanctionId: banned.sanctionId }])
  suggestions.learn("projectId", projectId)
  suggestions.learn("email", `${name}-player@example.com`)
  suggestions.learn("email", `${name}@example.com`)
  const tenant: Tenant = {
    suggestions,
    publishableKey: development.publishableKey,
    configured: configure(development, everything),
    callers: {
      nobody: {},
      publishable,
      player,
      bob: { ...publishable, ...bearer(bob.accessToken) },
      member: { ...publishable, ...bearer(text(member, "accessToken")) },
      bannedPlayer: { ...publishable, ...bearer(banned.player.accessToken) },
      otherPlayer: { ...publishable, ...bearer(away.accessToken) },
      secret,
      both: { ...secret, ...bearer(ada.accessToken) },
      production: { "x-svc-key": production.secretKey },
      revoked: yield* makeRevoked(url, developer, projectId),
      developer,
      otherDeveloper,
      forged: { ...publishable, ...bearer(`${ada.accessToken.slice(0, -4)}AAAA`) },
      refreshing: { ...publishable, ...bearer(ada.refreshToken) }
    }
  }
  return tenant
})
