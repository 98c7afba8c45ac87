/** Exports that outlive their credentials: a client that reads slowly must not read on after a revocation. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { TestApp } from "#testing/app"
import { at, configure, guest, request, type TestPlayer } from "#testing/players"
import { appWithSql, stealSession } from "../support/devices.ts"
import { openRawConnection } from "../support/malformed/raw-connection.ts"
import { ban, operate } from "../support/moderation-calls.ts"
import { live } from "../support/security/security-harness.ts"

const saves = 48
const saveBytes = 1024 * 1024

/** A player with more saves than the operating system buffers for a connection: up to 36 MiB on Linux. */
const richPlayer = Effect.gen(function* () {
  const app = yield* TestApp
  const sql = yield* SqlClient.SqlClient
  const player = yield* guest(app)
  yield* sql`
    insert into saves (environment_id, player_id, key, version, size, updated_at, data, fresh)
    select environment_id, id, 'save-' || n, 1, ${saveBytes}, now(),
      '"' || repeat('x', ${saveBytes - 2}) || '"', true
    from players, generate_series(1, ${saves}) as n where id = ${player.id}`
  return player
})

/** Begins an export and reads its first bytes only; `rest` reads on and returns whether all of it came. */
const beginExport = Effect.fnUntraced(function* (
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>
) {
  const { url } = yield* TestApp
  const connection = yield* openRawConnection(url)
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  connection.send(
    `${method} ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n${lines.join("")}\r\n`
  )
  yield* connection.begun
  return {
    rest: Effect.gen(function* () {
      connection.resumeReading()
      yield* connection.ended
      assert.include(connection.received.subarray(0, 20).toString(), " 200 ")
      return connection.received.subarray(-20).includes("}\r\n0\r\n")
    })
  }
})

const ownExport = Effect.fnUntraced(function* (player: TestPlayer, publishableKey?: string) {
  const app = yield* TestApp
  return yield* beginExport("GET", "/v1/players/me/export", {
    "x-svc-key": publishableKey ?? app.publishableKey,
    authorization: `Bearer ${player.accessToken}`
  })
})

/** The developer's session, and keys of the development environment. */
const developer = Effect.gen(function* () {
  const { developer: account, url } = yield* TestApp
  const signedIn = yield* request(`${url}/v1/developers/login`, { body: account })
  const headers = { authorization: `Bearer ${String(at(signedIn.body, "token"))}` }
  const { body } = yield* request(`${url}/v1/projects`, { headers })
  const project = `${url}/v1/projects/${String(at(body, "projects", 0, "id"))}`
  const newKey = Effect.fnUntraced(function* (kind: string) {
    const made = yield* request(`${project}/environments/development/keys`, {
      headers,
      body: { kind }
    })
    const id = String(at(made.body, "key", "id"))
    const revoke = request(`${project}/keys/${id}`, { method: "DELETE", headers })
    return { plain: String(at(made.body, "plain")), revoke }
  })
  return { headers, newKey, project, url }
})

layer(appWithSql(), live)("an export that is read slowly", (it) => {
  it.effect(
    "completes a slow export while its credentials count, also of a player who was banned before",
    () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        yield* configure(app, { features: { saves: true } })
        const player = yield* richPlayer
        assert.isTrue(yield* (yield* ownExport(player)).rest)
        yield* ban(app, player.id)
        assert.isTrue(yield* (yield* ownExport(player)).rest)
      }).pipe(Effect.scoped),
    { tags: "long" }
  )

  it.effect("cuts a slow export when its player is banned, deleted or signed out everywhere", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const ends = {
        banned: ({ id }: TestPlayer) => ban(app, id),
        deleted: ({ id }: TestPlayer) => operate(app, "POST", `players/${id}/delete`),
        "signed out": (player: TestPlayer) => stealSession(app, player)
      }
      for (const [name, end] of Object.entries(ends)) {
        const player = yield* richPlayer
        const { rest } = yield* ownExport(player)
        yield* end(player)
        assert.isFalse(yield* rest, name)
      }
    }).pipe(Effect.scoped)
  )

  it.effect("cuts a slow export when its player is deleted, before any cache hears of it", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const player = yield* richPlayer
      const { rest } = yield* ownExport(player)
      yield* sql`delete from players where id = ${player.id}`
      assert.isFalse(yield* rest)
    }).pipe(Effect.scoped)
  )

  it.effect(
    "cuts a slow export when its key is revoked, or its developer signs out",
    () =>
      Effect.gen(function* () {
        const { headers, newKey, project, url } = yield* developer
        const player = yield* richPlayer
        const publishable = yield* newKey("publishable")
        const own = yield* ownExport(player, publishable.plain)
        yield* publishable.revoke
        assert.isFalse(yield* own.rest, "publishable key")

        const secret = yield* newKey("secret")
        const byKey = yield* beginExport("POST", `/v1/admin/players/${player.id}/export`, {
          "x-svc-key": secret.plain
        })
        yield* secret.revoke
        assert.isFalse(yield* byKey.rest, "secret key")

        const path = `${project.slice(url.length)}/environments/development/players/${player.id}/export`
        const byDeveloper = yield* beginExport("POST", path, headers)
        yield* request(`${url}/v1/developers/logout`, { method: "POST", headers })
        assert.isFalse(yield* byDeveloper.rest, "developer")
      }).pipe(Effect.scoped),
    { tags: "long" }
  )
})
