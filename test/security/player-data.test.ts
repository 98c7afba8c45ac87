/**
 * Failures of export and deletion: an export without a row, a deletion that leaves a name, and a restart
 * or a restored room that brings a deleted player back.
 * @module-tag long
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { poolLayer } from "#sql/database"
import { playerTables } from "#server/feature-layers"
import { TestDatabase } from "#testing/app"
import {
  at,
  configure,
  goOnline,
  guest,
  newPlayer,
  type OnlinePlayer,
  request,
  type TestTarget
} from "#testing/players"
import { startCluster } from "#testing/runners"
import { block } from "../support/block-calls.ts"
import { manage } from "../support/channel-calls.ts"
import { shareTools, link, transferCode } from "../support/devices.ts"
import { ask, ban, lastSanction, operate, play, unban } from "../support/moderation-calls.ts"
import { DatabaseLive } from "../support/service.ts"
import { openRoom } from "../support/opened-room.ts"

const features = {
  emailLogin: true,
  multiplayer: true,
  realtimeChannels: true,
  saves: true,
  stats: true,
  statsVerification: true
}

const document = {
  features,
  ...shareTools,
  stats: ["a", "b", "c"].map((key) => ({ key })),
  integrity: { stats: { rules: [{ stat: "c", max: 5 }] } }
}

const displayName = "Zebrafink Quux"
const email = "zebrafink.quux@example.com"
const password = "correct horse battery"

/** A player with an email and with two rows in every table that can hold them. */
const makeBusy = Effect.fnUntraced(function* (target: TestTarget) {
  const sql = yield* SqlClient.SqlClient
  yield* configure(target, document)
  const signedUp = yield* ask(target, "auth/email/signup", { email, password, displayName })
  const text = (...path: ReadonlyArray<string>) => String(at(signedUp.body, ...path))
  const player = {
    id: text("player", "id"),
    accessToken: text("accessToken"),
    refreshToken: text("refreshToken")
  }
  const act = (method: "PUT" | "POST" | "DELETE", path: string, body?: unknown, key?: string) =>
    Effect.map(play(target, player, method, path, body, key), (answer) => {
      assert.isBelow(answer.status, 300, `${path} ${JSON.stringify(answer.body)}`)
    })
  yield* ask(target, "auth/email/login", { email, password })
  yield* ask(target, "auth/password/forgot", { email })
  yield* link(player, "google")
  yield* transferCode(target, player)
  for (const key of ["one", "two", "gone"]) yield* act("PUT", `saves/${key}`, { data: { key } })
  yield* act("DELETE", "saves/gone")
  for (const key of ["k1", "k2"]) yield* act("POST", "stats", { stats: { a: 1, b: 2, c: 9 } }, key)
  yield* act("PUT", "news/opt-in", { optIn: true })
  yield* act("POST", "players/me/age-signal", {
    platform: "ios",
    status: "declared",
    upperBound: 17
  })
  for (const score of [7, 8]) yield* act("POST", "share/links", { kind: "score", score })
  for (const message of ["the first appeal", "the second appeal"]) {
    yield* ban(target, player.id, { publicNote: message })
    const sanction = yield* lastSanction(target, player)
    yield* act("POST", `players/me/sanctions/${sanction}/appeal`, { message })
    yield* unban(target, player.id)
  }
  yield* sql`
    insert into player_days (environment_id, day, player_id)
    select environment_id, day::date, id from players, unnest(array['2026-11-18', '2026-11-19']) day
    where id = ${player.id}`
  return player
})

/** Columns that an export omits: keys of the owner, secrets and derived values. */
const notExported: Readonly<Record<string, ReadonlyArray<string>>> = {
  players: ["environment_id"],
  // Whether the X profile is visible, of any identity.
  identities: ["environment_id", "player_id", "password_hash", "grant_sealed", "visible"],
  share_links: ["environment_id", "player_id"],
  sessions: [
    "environment_id",
    "player_id",
    "token_hash",
    "parent_hash",
    "expires_at",
    "revoked_at",
    "sanction_id"
  ],
  sanctions: ["environment_id", "player_id", "number", "reason", "appeal_id"],
  // The last four describe the last write.
  saves: ["environment_id", "player_id", "fresh", "growth", "guest_bytes_most", "environment_room"],
  // Sums per period, derived from the same reports.
  stats: ["environment_id", "player_id", "aggregation", "day", "week", "month"],
  blocks: ["environment_id", "player_id"],
  stat_signals: ["environment_id", "player_id", "id"],
  player_days: ["environment_id", "player_id"]
}

/** The values of a player's rows that an export lacks. */
const findUnexported = Effect.fnUntraced(function* (id: string, exported: string) {
  const sql = yield* SqlClient.SqlClient
  const unexported: Array<string> = []
  for (const { deletion, exportedAs, table } of playerTables) {
    if (exportedAs === null || deletion === "entity") continue
    const owner = sql(table === "players" ? "id" : "player_id")
    const rows = yield* sql<{ row: string }>`
      select to_jsonb(t)::text as row from ${sql(table)} t where ${owner} = ${id}`
    if (table !== "players" && rows.length < 2) unexported.push(`${table}: ${rows.length} rows`)
    for (const { row } of rows) {
      // A deleted save keeps its row, so that its version number continues.
      if (at(JSON.parse(row), "data") === null) continue
      for (const [column, value] of Object.entries(Object(JSON.parse(row)))) {
        if (value === null || notExported[table]?.includes(column)) continue
        const isTime = typeof value === "string" && /^\d{4}-\d\d-\d\dT/.test(value)
        const text = isTime ? `${value.slice(0, 19)}` : String(value)
        if (!exported.includes(text)) unexported.push(`${table}.${column}: ${text}`)
      }
    }
  }
  return unexported
})

/** Every table with a row that contains a text, in any case. */
const tablesWith = Effect.fnUntraced(function* (text: string) {
  const sql = yield* SqlClient.SqlClient
  const tables = yield* sql<{ name: string }>`
    select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relkind in ('r', 'm', 'p') and n.nspname not in ('pg_catalog', 'information_schema')
      and n.nspname not like 'pg_toast%'`
  const found: Array<string> = []
  for (const { name } of tables) {
    const rows = yield* sql`
      select 1 from ${sql(name)} t where position(${text.toLowerCase()} in lower(t::text)) > 0`
    if (rows.length > 0) found.push(name)
  }
  return found.toSorted()
})

const assertErased = Effect.fnUntraced(function* (id: string) {
  assert.deepStrictEqual(yield* tablesWith("zebrafink"), [])
  assert.deepStrictEqual(yield* tablesWith("quux"), [])
  assert.deepStrictEqual(yield* tablesWith(id), ["audit", "deleted_players"])
})

/** Joins a room and channels together with a player who stays. */
const joinRoomAndChannels = Effect.fnUntraced(function* (target: TestTarget, ada: OnlinePlayer) {
  const bob = yield* newPlayer(target, "Bob")
  yield* manage(target, "PUT", "lobby", { allow: [ada.id, bob.id], speakers: [ada.id] })
  for (const op of ["mute", "ban", "unban"]) {
    yield* manage(target, "POST", "lobby/moderate", { op, playerId: ada.id })
  }
  const { roomId } = yield* openRoom([ada, bob])
  yield* block(target, ada, bob)
  yield* block(target, ada, yield* guest(target, "Eve"))
  yield* ada.socket.request({ t: "setMyState", patch: { name: displayName } })
  for (const { socket } of [ada, bob]) yield* socket.request({ t: "channelJoin", channel: "lobby" })
  yield* ada.socket.request({ t: "channelCreate" })
  return { bob, roomId }
})

describe("a player's data", { timeout: 180_000 }, () => {
  it.live("exports a player row by row, and keeps none after deletion, restart and restore", () =>
    Effect.gen(function* () {
      const { url } = yield* TestDatabase
      const env = { SVC_LOG_LEVEL: "debug", SVC_LOG_REQUESTS: "all", SVC_LOG_FORMAT: "json" }
      const cluster = yield* startCluster({ databaseUrl: url, size: 1, env })
      const { target } = cluster
      const [first] = cluster.runners
      const withDatabase = <A>(effect: Effect.Effect<A, never, SqlClient.SqlClient>) =>
        Effect.provide(effect, poolLayer({ url: Redacted.make(url), connections: 1 }))

      const player = yield* withDatabase(Effect.orDie(makeBusy(target)))
      const ada = yield* goOnline(target, player)
      const { bob, roomId } = yield* joinRoomAndChannels(target, ada)
      const exported = yield* operate(target, "POST", `players/${ada.id}/export`)
      const text = JSON.stringify(exported.body)
      assert.deepStrictEqual(yield* withDatabase(Effect.orDie(findUnexported(ada.id, text))), [])
      for (const secret of ["$argon2", "sealed-grant", ada.refreshToken, password]) {
        assert.notInclude(text, secret)
      }

      const deleted = yield* request(`${target.url}/v1/players/me`, {
        method: "DELETE",
        headers: {
          "x-svc-key": target.publishableKey,
          authorization: `Bearer ${ada.accessToken}`
        },
        body: { password }
      })
      assert.deepStrictEqual(deleted.body, { deleted: true })
      assert.strictEqual((yield* ada.socket.closed).code, 4001)
      yield* bob.socket.next("player_left", (frame) => frame["playerId"] === ada.id)
      yield* first?.stop ?? Effect.void
      yield* withDatabase(Effect.orDie(assertErased(ada.id)))
      const output = first?.output() ?? ""
      assert.include(output, "/v1/players/me")
      assert.notMatch(output, /zebrafink|quux/i)

      const again = yield* cluster.join
      const there = { ...target, url: again.url }
      const back = yield* goOnline(there, bob)
      yield* back.socket.request({ t: "resume", roomId })
      const room = yield* back.socket.next("room_joined")
      assert.strictEqual(at(room, "room", "id"), roomId)
      yield* back.socket.request({ t: "channelJoin", channel: "lobby" })
      const channel = yield* back.socket.next("channel_joined")
      for (const response of [room, channel, (yield* manage(there, "GET", "lobby")).body]) {
        assert.notMatch(JSON.stringify(response), new RegExp(`zebrafink|quux|${ada.id}`, "i"))
      }
      yield* withDatabase(Effect.orDie(assertErased(ada.id)))
      assert.notMatch(again.output(), /zebrafink|quux/i)
    }).pipe(Effect.provide(DatabaseLive), Effect.scoped)
  )
})
