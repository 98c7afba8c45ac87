/**
 * Ownership: foreign resources look like missing ones. Ids of another player, project or environment, of
 * deleted resources, random ids and malformed ids all get the same response.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { PlayerId } from "#rpc/ids"
import { type Endpoint, endpoints } from "#server/http/authorization"
import { at, configure, guest, request, type TestResponse, type TestTarget } from "#testing/players"
import {
  everything,
  makeAppeal,
  makeRoom,
  makeKey,
  makeProject,
  signUp,
  type TestDeveloper
} from "../support/operator-harness.ts"
import { addDeadLetterOf } from "../support/dead-letters.ts"
import { enable } from "../support/function-calls.ts"
import { makeUnfinished } from "../support/hosting.ts"
import { SecurityAppLive, live } from "../support/security/security-harness.ts"

type Ids = Readonly<Record<string, string>>
type Headers = Readonly<Record<string, string>>

const put = (url: string, headers: Headers, body: unknown) =>
  Effect.map(request(url, { method: "PUT", headers, body }), ({ body: answer, status }) => {
    if (status !== 200) throw new Error(`${url}: ${status} ${JSON.stringify(answer)}`)
  })

const playing = ({ publishableKey }: TestTarget, accessToken: string): Headers => ({
  "x-svc-key": publishableKey,
  authorization: `Bearer ${accessToken}`
})

/** Creates one resource of every kind with an id in an environment. */
const makeResources = Effect.fnUntraced(function* (
  target: TestTarget,
  developer: TestDeveloper,
  projectId: string,
  name: string
) {
  const { player, ...appeal } = yield* makeAppeal(target)
  const { keyId } = yield* makeKey(developer, projectId, "secret")
  const saver = yield* guest(target)
  const saves = `${target.url}/v1/saves`
  yield* put(`${saves}/${name}`, playing(target, saver.accessToken), { data: 1 })
  const server = { "x-svc-key": target.secretKey }
  yield* put(`${target.url}/v1/realtime/channels/${name}`, server, {})
  yield* enable(target)
  const { ref, sha256 } = yield* makeUnfinished(target)
  const id = yield* addDeadLetterOf(target.publishableKey)
  const roomId = yield* makeRoom(target)
  const domain = `${name}.example.com`
  yield* request(`${target.url}/v1/hosting/domains`, { headers: server, body: { domain } })
  return {
    player,
    saver,
    ids: {
      ...appeal,
      playerId: player.id,
      roomId,
      keyId,
      projectId,
      name,
      key: name,
      ref,
      sha256,
      domain,
      binding: "DB",
      id
    }
  }
})

const none = "0".repeat(26)

/** Adds rooms, deployments, files, domains and dead letters of others, and such that do not exist. */
const withDeployments = (
  kinds: Readonly<Record<string, Ids>>,
  foreign: Ids,
  inProduction: Ids
): Readonly<Record<string, Ids>> => {
  const pick = ({ domain = "", id = "", ref = "", roomId = "", sha256 = "" }: Ids) => ({
    domain,
    id,
    ref,
    roomId,
    sha256
  })
  return {
    ...kinds,
    foreign: { ...kinds["foreign"], ...pick(foreign) },
    otherEnvironment: { ...kinds["otherEnvironment"], ...pick(inProduction) },
    random: {
      ...kinds["random"],
      ref: `dep_${none}`,
      roomId: `rm_${none}`,
      sha256: "0".repeat(64),
      domain: "nobody.example.com",
      id: "999999999"
    },
    malformed: { ...kinds["malformed"], ref: "x", roomId: "x", sha256: "x", domain: "x", id: "x" }
  }
}

/** Creates resources of the caller, of others and deleted ones. */
const makeAllResources = Effect.fnUntraced(function* (name: string) {
  const owner = yield* signUp(`owner-${name}`)
  const stranger = yield* signUp(`stranger-${name}`)
  const { development, production, projectId } = yield* makeProject(owner)
  const otherProject = yield* makeProject(stranger)
  const deletedProject = yield* makeProject(owner)
  const own = yield* makeResources(development, owner, projectId, "own")
  const foreign = yield* makeResources(
    otherProject.development,
    stranger,
    otherProject.projectId,
    "foreign"
  )
  const inProduction = yield* makeResources(production, owner, projectId, "production")
  const otherPlayer = yield* makeResources(development, owner, projectId, "another")
  const deleted = yield* makeResources(development, owner, projectId, "deleted")
  const { secretKey, url } = development
  const remove = (path: string, headers: Headers, method = "DELETE") =>
    request(url + path, { method, headers })
  yield* remove(`/v1/admin/players/${deleted.player.id}/delete`, { "x-svc-key": secretKey }, "POST")
  yield* remove("/v1/realtime/channels/deleted", { "x-svc-key": secretKey })
  yield* remove("/v1/saves/deleted", playing(development, deleted.saver.accessToken))
  yield* remove(`/v1/projects/${deletedProject.projectId}`, owner.headers)
  for (const resetTimeZone of ["Asia/Tokyo", "Europe/Rome", "UTC"]) {
    yield* configure(production, { ...everything, resetTimeZone })
    yield* configure(otherProject.development, { ...everything, resetTimeZone })
  }
  const kinds: Readonly<Record<string, Ids>> = {
    foreign: { ...foreign.ids, version: "4" },
    // An operator may use the resources of another player; to a player they are missing.
    otherPlayer: { sanctionId: otherPlayer.ids.sanctionId, key: "another" },
    otherEnvironment: {
      playerId: inProduction.player.id,
      appealId: inProduction.ids.appealId,
      sanctionId: inProduction.ids.sanctionId,
      name: "production",
      key: "production",
      version: "4"
    },
    deleted: {
      playerId: deleted.player.id,
      appealId: deleted.ids.appealId,
      sanctionId: deleted.ids.sanctionId,
      name: "deleted",
      key: "deleted",
      projectId: deletedProject.projectId
    },
    random: {
      playerId: `pl_${none}`,
      appealId: `apl_${none}`,
      sanctionId: `snc_${none}`,
      keyId: `key_${none}`,
      projectId: `prj_${none}`,
      name: "nothing",
      key: "nothing",
      version: "999"
    },
    malformed: {
      playerId: "x",
      appealId: "x",
      sanctionId: "x",
      keyId: "x",
      projectId: "x",
      ref: "x",
      sha256: "x"
    }
  }
  const ids = withDeployments(kinds, foreign.ids, inProduction.ids)
  return { development, kinds: ids, owner, own, url }
})

const fill = (path: string, ids: Ids): string =>
  path.replace(/:([A-Za-z0-9]+)/g, (_, name: string) => {
    const value = ids[name]
    if (value === undefined) throw new Error(`Failed to fill ${path}: no value for ${name}`)
    return value
  })

/** Valid bodies by the last segment of the path. */
const bodies: Readonly<Record<string, unknown>> = {
  age: { band: "teen" },
  appeal: { message: "Please." },
  messages: { type: "news" },
  migrate: { migrations: [{ name: "0001", sql: "select 1" }] },
  query: { sql: "select 1" },
  moderate: { op: "kick", playerId: `pl_${"0".repeat(26)}` },
  resolve: { accept: true }
}

const bodyOf = ({ method, path }: Endpoint): unknown =>
  method === "GET" || method === "DELETE" ? undefined : (bodies[path.split("/").at(-1) ?? ""] ?? {})

/** The parts of a response by which a caller could distinguish two. */
const visibleParts = ({ body, headers, status }: TestResponse) => ({
  status,
  body,
  headers: Object.fromEntries(
    Array.from(headers).filter(([name]) => name !== "date" && name !== "x-request-id")
  )
})

/** Endpoints that create the resource if it is missing. */
const creates = new Set([
  "PUT /v1/realtime/channels/:name",
  "PUT /v1/saves/:key",
  "PUT /v1/admin/players/:playerId/saves/:key",
  "PUT /v1/admin/functions/secrets/:name",
  "PUT /v1/projects/:projectId/environments/:env/functions/secrets/:name"
])

/** Endpoints that answer the same for players who exist: nobody learns who does. */
const silent = /^(?:PUT|DELETE) \/v1\/social\/blocks\//

const idParams =
  /:(projectId|playerId|appealId|sanctionId|keyId|version|name|key|ref|sha256|domain|roomId|id)\b/g

const auditPath = "/v1/projects/:projectId/audit"

layer(SecurityAppLive(), live)("ownership (API1, ASVS 8)", (it) => {
  it.effect(
    "foreign, deleted, random and malformed ids in a path get the same response",
    () =>
      Effect.gen(function* () {
        const { development, kinds, own, owner, url } = yield* makeAllResources("paths")
        const callers: Partial<Record<Endpoint["access"], Headers>> = {
          secret: { "x-svc-key": development.secretKey },
          member: owner.headers,
          player: playing(development, own.player.accessToken),
          evenBanned: playing(development, own.player.accessToken)
        }
        const samples = { ...own.ids, env: "development", provider: "google", version: "1" }
        let cells = 0
        for (const endpoint of endpoints) {
          const { access, method, path } = endpoint
          const headers = callers[access]
          if (headers === undefined || creates.has(`${method} ${path}`)) continue
          const saver = playing(development, own.saver.accessToken)
          for (const [, param = ""] of path.matchAll(idParams)) {
            const isSilent = silent.test(`${method} ${path}`)
            const known = Object.entries(kinds).flatMap(([kind, { [param]: id }]) =>
              id === undefined || (isSilent && kind === "malformed") ? [] : [{ kind, id }]
            )
            const answers = yield* Effect.forEach(
              known,
              ({ id }) =>
                request(`${url}${fill(path, { ...samples, [param]: id })}`, {
                  method,
                  headers: isSilent || (param === "key" && access !== "secret") ? saver : headers,
                  body: bodyOf(endpoint)
                }),
              { concurrency: 8 }
            )
            cells += answers.length
            const random = answers[known.findIndex(({ kind }) => kind === "random")]
            assert.isAtLeast(answers.length, 3, path)
            for (const [index, answer] of answers.entries()) {
              const { kind } = known[index] ?? {}
              // Its members read the audit log of a deleted project.
              if (kind === "deleted" && path === auditPath) continue
              const what = `${method} ${path} by ${param}: ${kind}`
              assert.strictEqual(answer.status, isSilent ? 200 : 404, what)
              assert.deepStrictEqual(visibleParts(answer), visibleParts(random ?? answer), what)
            }
          }
        }
        assert.isAtLeast(cells, 200)
      }),
    60_000
  )

  it.effect(
    "foreign, deleted, random and malformed ids in a body get the same response",
    () =>
      Effect.gen(function* () {
        const { development, kinds, own, url } = yield* makeAllResources("bodies")
        const appeal = (sanctionId: string | undefined) =>
          request(`${url}/v1/auth/appeal`, {
            headers: { "x-svc-key": development.publishableKey },
            body: { refreshToken: own.player.refreshToken, sanctionId, message: "Please." }
          })
        const moderate = (playerId: string) =>
          request(`${url}/v1/realtime/channels/own/moderate`, {
            headers: { "x-svc-key": development.secretKey },
            body: { op: "ban", playerId, seconds: 60 }
          })
        const all = Object.values(kinds)
        const appeals = yield* Effect.forEach(all, ({ sanctionId }) => appeal(sanctionId))
        for (const answer of appeals) {
          assert.strictEqual(at(answer.body, "error", "code"), "not_found")
          assert.deepStrictEqual(visibleParts(answer), visibleParts(appeals[0] ?? answer))
        }
        // The players of others, deleted and invented ones are equally unknown.
        const players = all.flatMap(({ playerId = [] }) => playerId)
        const bans = yield* Effect.forEach(players, moderate)
        for (const [index, answer] of bans.entries()) {
          const status = Schema.is(PlayerId)(players[index]) ? 404 : 400
          const first = bans.find((ban) => ban.status === status)
          assert.strictEqual(answer.status, status)
          assert.deepStrictEqual(visibleParts(answer), visibleParts(first ?? answer))
        }
      }),
    60_000
  )
})
