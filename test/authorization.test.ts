/**
 * Who may call what (spec section 5): the committed matrix is up to date, and the running service
 * keeps to it, endpoint by endpoint and caller by caller.
 */
import { readFileSync } from "node:fs"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import {
  authorizationText,
  type Caller,
  callers,
  type Endpoint,
  endpoints,
  isCaller,
  refusal
} from "#src/http/authorization"
import { TestApp } from "#src/testing/app"
import { type Answer, at, configure, guest, request } from "#src/testing/players"
import {
  everything,
  makeAppeal,
  makeKey,
  makeProject,
  makeWorld,
  signUp,
  type World
} from "./operating/world.ts"
import { DatabaseLive } from "./service.ts"

const App = TestApp.layerWith({ SVC_SIGNUPS: "open" }).pipe(Layer.provide(DatabaseLive))

const committed = readFileSync(new URL("../rpc/authorization.md", import.meta.url), "utf8")

describe("rpc/authorization.md", () => {
  it("is what the definitions say (otherwise: npm run generate)", () => {
    assert.strictEqual(committed, authorizationText())
  })
})

type Headers = Readonly<Record<string, string>>

/** How each caller calls; a caller that is several calls several times. */
const headersOf = (world: World): Readonly<Record<Caller, ReadonlyArray<Headers>>> => {
  const { development } = world
  const publishable = { "x-svc-key": development.publishableKey }
  const secret = { "x-svc-key": development.secretKey }
  const withToken = (key: Headers, token: string) => ({ ...key, authorization: `Bearer ${token}` })
  return {
    nobody: [{}],
    publishable: [publishable],
    player: [withToken(publishable, world.player.accessToken)],
    bannedPlayer: [withToken(publishable, world.bannedPlayer.accessToken)],
    otherPlayer: [withToken(publishable, world.otherPlayer.accessToken)],
    secret: [secret, withToken(secret, world.player.accessToken)],
    revoked: [
      ...world.revoked,
      ...world.revoked.map((it) => withToken(it, world.player.accessToken))
    ],
    developer: [world.developer.headers],
    otherDeveloper: [world.otherDeveloper.headers],
    signedOut: [world.signedOut]
  }
}

type Samples = Readonly<Record<string, string>>

/** Real values for the parameters of paths, so that nothing is refused for what it is about. */
const makeSamples = Effect.fnUntraced(function* ({
  developer,
  development,
  projectId
}: Pick<World, "developer" | "development" | "projectId">) {
  const { appealId, sanctionId } = yield* makeAppeal(development)
  const { keyId } = yield* makeKey(developer, projectId, "secret")
  const { id: playerId } = yield* guest(development)
  const samples: Samples = {
    projectId,
    env: "development",
    appealId,
    sanctionId,
    keyId,
    playerId,
    name: "lobby",
    key: "slot",
    provider: "google",
    version: "1"
  }
  return samples
})

const fill = (path: string, samples: Samples): string =>
  path.replace(/:([A-Za-z]+)/g, (_, name: string) => {
    const value = samples[name]
    if (value === undefined) throw new Error(`${path}: there is no sample of ${name}`)
    return value
  })

/** These end what the others stand on. */
const endings = ["DELETE /v1/projects/:projectId", "POST /v1/developers/logout"]

const nameOf = ({ method, path }: Endpoint): string => `${method} ${path}`

/** Paths that name something of one environment or project. */
const owned = /:(?:playerId|appealId|keyId|version|name)\b/

/** What makes the thing where it is not there yet. */
const makes = new Set(["PUT /v1/realtime/channels/:name"])

/** Bodies that are in order, by the end of the path. */
const bodies: Readonly<Record<string, unknown>> = {
  age: { band: "teen" },
  ban: {},
  messages: { type: "news" },
  moderate: { op: "kick", playerId: "pl_1" },
  resolve: { accept: true }
}

const everyCaller = Object.keys(callers).filter(isCaller)

/** As the matrix says it: `401 invalid_key`. */
const told = ({ body, status }: Answer): string =>
  [status, at(body, "error", "code")].filter((it) => it !== undefined).join(" ")

/** What says that a caller may not call, rather than what is wrong with a call. */
const refusals = new Set([
  "401 invalid_key",
  "401 unauthorized",
  "403 player_banned",
  "403 secret_key_required"
])

layer(App, { timeout: "120 seconds", excludeTestServices: true })("authorization", (it) => {
  it.effect(
    "is as the matrix says, for every endpoint and every caller",
    () =>
      Effect.gen(function* () {
        const { url } = yield* TestApp
        const world = yield* makeWorld
        const samples = yield* makeSamples(world)
        const headers = headersOf(world)
        const ask = ({ method, path }: Endpoint, own: Headers) =>
          request(`${url}${fill(path, samples)}`, {
            method,
            headers: own,
            ...(method === "GET" ? {} : { body: {} })
          })
        const wrong: Array<string> = []
        const expect = (endpoint: Endpoint, caller: Caller, answer: Answer, right: boolean) => {
          if (!right) wrong.push(`${nameOf(endpoint)}: ${callers[caller]} got ${told(answer)}`)
        }
        for (const endpoint of endpoints) {
          for (const caller of everyCaller) {
            const refused = refusal(endpoint, caller)
            if (refused === undefined) continue
            for (const own of headers[caller]) {
              const answer = yield* ask(endpoint, own)
              expect(endpoint, caller, answer, told(answer) === refused)
            }
          }
        }
        const rank = (endpoint: Endpoint) => endings.indexOf(nameOf(endpoint))
        for (const endpoint of endpoints.toSorted((a, b) => rank(a) - rank(b))) {
          for (const caller of everyCaller) {
            if (refusal(endpoint, caller) !== undefined) continue
            for (const own of headers[caller]) {
              const answer = yield* ask(endpoint, own)
              const through = answer.status < 500 && !refusals.has(told(answer))
              // Where a stranger gets 404, its members may not.
              const found = endpoint.access !== "member" || told(answer) !== "404 not_found"
              expect(endpoint, caller, answer, through && found)
            }
          }
        }
        assert.deepStrictEqual(wrong, [])
      }),
    120_000
  )

  it.effect("lets nobody reach into another environment or project by its own way in", () =>
    Effect.gen(function* () {
      const { url } = yield* TestApp
      const owner = yield* signUp("owner")
      const { development, production, projectId } = yield* makeProject(owner)
      const stranger = yield* signUp("neighbour")
      const { projectId: strangersProject } = yield* makeProject(stranger)
      // The second version of the config is the development environment's alone.
      yield* configure(development, { ...everything, resetTimeZone: "Asia/Tokyo" })
      const samples = { ...(yield* makeSamples({ developer: owner, development, projectId })) }
      const elsewhere = [
        { access: "secret", headers: { "x-svc-key": production.secretKey }, params: {} },
        { access: "member", headers: owner.headers, params: { env: "production" } },
        {
          access: "member",
          headers: stranger.headers,
          params: { projectId: strangersProject }
        }
      ] as const
      const wrong: Array<string> = []
      for (const endpoint of endpoints.filter(({ path }) => owned.test(path))) {
        for (const { access, headers, params } of elsewhere) {
          const inProject = /:keyId/.test(endpoint.path) && "env" in params
          if (endpoint.access !== access || makes.has(nameOf(endpoint)) || inProject) continue
          const body = bodies[endpoint.path.split("/").at(-1) ?? ""]
          const answer = yield* request(
            `${url}${fill(endpoint.path, { ...samples, version: "2", ...params })}`,
            { method: endpoint.method, headers, ...(body === undefined ? {} : { body }) }
          )
          if (answer.status !== 404) wrong.push(`${nameOf(endpoint)}: ${told(answer)}`)
        }
      }
      assert.deepStrictEqual(wrong, [])
    })
  )

  it.effect("a publishable key never bans, not even beside a player or a secret key's body", () =>
    Effect.gen(function* () {
      const { url } = yield* TestApp
      const owner = yield* signUp("judge")
      const { development, projectId } = yield* makeProject(owner)
      const victim = yield* guest(development)
      const accomplice = yield* guest(development)
      const { publishableKey } = development
      const mounted = [
        `${url}/v1/admin`,
        `${url}/v1/projects/${projectId}/environments/development`
      ]
      for (const mount of mounted) {
        for (const headers of [
          { "x-svc-key": publishableKey },
          { "x-svc-key": publishableKey, authorization: `Bearer ${accomplice.accessToken}` },
          { authorization: `Bearer ${publishableKey}` }
        ]) {
          const answer = yield* request(`${mount}/players/${victim.id}/ban`, { headers, body: {} })
          assert.include([401, 403], answer.status)
        }
      }
      const { body } = yield* request(`${url}/v1/players/me/sanctions`, {
        headers: { "x-svc-key": publishableKey, authorization: `Bearer ${victim.accessToken}` }
      })
      assert.deepStrictEqual(body, { sanctions: [] })
    })
  )
})
