/**
 * Export and deletion of player data, checked for every table that the database itself lists.
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { features as contracts } from "#rpc/features"
import { playerTables } from "#server/feature-layers"
import { TestApp } from "#testing/app"
import {
  at,
  authenticate,
  configure,
  goOnline,
  guest,
  newPlayer,
  type OnlinePlayer
} from "#testing/players"
import { block } from "../../support/block-calls.ts"
import { manage, uniqueName } from "../../support/channel-calls.ts"
import { appWithSql, shareTools, link, transferCode } from "../../support/devices.ts"
import {
  ban,
  codeOf,
  lastSanction,
  operate,
  play,
  refresh,
  unban
} from "../../support/moderation-calls.ts"

/** Tables without player ids. */
const tablesWithoutPlayers = [
  "blobs",
  "checkouts",
  "closed_signups",
  "configs",
  "daily_actives",
  "deployment_files",
  "deployments",
  "developer_email_links",
  "developer_flows",
  "developer_identities",
  "developer_sessions",
  "developers",
  "environments",
  "function_crons",
  "function_data",
  "function_deliveries",
  "function_deployments",
  "function_hosts",
  "function_logs",
  "function_secrets",
  "function_snapshot_objects",
  "function_snapshots",
  "function_usage",
  "functions",
  "hosted_apps",
  "hosted_domains",
  "invite_codes",
  "invite_redemptions",
  "invite_uses",
  "keys",
  "ledger_postings",
  "ledger_transactions",
  "live_reports",
  "migrations",
  "node_reports",
  "payment_reconciliation",
  "payment_returns",
  "project_members",
  "projects",
  "provider_credentials",
  "request_minutes",
  "rooms_begun",
  "runner_reports",
  "setup_token",
  "share_addresses",
  "share_days",
  "share_salts",
  "share_visitors",
  "sign_in_links",
  "signing_keys",
  "sweep_claims",
  "usage_batches",
  "usage_counters",
  "usage_periods",
  "webhook_secrets"
]

const App = appWithSql({ SVC_THROTTLES: "on" })

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
  stats: [{ key: "score", title: "Score", aggregation: "max" }],
  integrity: { stats: { rules: [{ stat: "score", max: 100 }] } }
}

const tables = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ name: string }>`
    select table_name as name from information_schema.tables
    where table_schema = 'public' and table_type = 'BASE TABLE'
    order by table_name`
  return rows.map(({ name }) => name)
})

/** The tables with a row that contains a text. */
const tablesWith = Effect.fnUntraced(function* (text: string) {
  const sql = yield* SqlClient.SqlClient
  const found: Array<string> = []
  for (const name of yield* tables) {
    const rows = yield* sql`
      select 1 from ${sql(name)} as t where position(${text} in t::text) > 0 limit 1`
    if (rows.length > 0) found.push(name)
  }
  return found
})

/** A player with rows in every table that can hold some. */
const busyPlayer = Effect.gen(function* () {
  const app = yield* TestApp
  const sql = yield* SqlClient.SqlClient
  yield* configure(app, document)
  const ada = yield* newPlayer(app, "Ada")
  const channel = yield* uniqueName
  yield* manage(app, "PUT", channel, { allow: [ada.id], speakers: [ada.id] })
  for (const op of ["mute", "ban", "unban"]) {
    yield* manage(app, "POST", `${channel}/moderate`, { op, playerId: ada.id })
  }
  yield* ada.socket.request({ t: "channelJoin", channel })
  yield* ada.socket.request({ t: "channelCreate" })
  const made = yield* ada.socket.request({ t: "create", mode: "default" })
  const saved = yield* play(app, ada, "PUT", "saves/one", { data: { level: 3 } })
  assert.strictEqual(saved.status, 200, JSON.stringify(saved.body))
  for (const [key, score] of [
    ["a", 7],
    ["b", 1000]
  ] as const) {
    const answer = yield* play(app, ada, "POST", "stats", { stats: { score } }, key)
    assert.strictEqual(answer.status, 200, JSON.stringify(answer.body))
  }
  for (const provider of ["email", "google", "apple"] as const) yield* link(ada, provider)
  yield* transferCode(app, ada)
  const eve = yield* guest(app, "Eve")
  yield* block(app, ada, eve)
  yield* block(app, eve, ada)
  const resent = yield* play(app, ada, "POST", "auth/email/resend", {})
  assert.strictEqual(resent.status, 200, JSON.stringify(resent.body))
  yield* play(app, ada, "PUT", "news/opt-in", { optIn: true })
  yield* play(app, ada, "POST", "share/links", { kind: "score", score: 7 })
  const signal = { platform: "ios", status: "declared", upperBound: 17 }
  yield* play(app, ada, "POST", "players/me/age-signal", signal)
  yield* ban(app, ada.id, { reason: "private", publicNote: "note", durationHours: 1 })
  const sanctionId = yield* lastSanction(app, ada)
  yield* play(app, ada, "POST", `players/me/sanctions/${sanctionId}/appeal`, { message: "Please" })
  yield* unban(app, ada.id)
  // The ban closed the socket, so the player connects again.
  const back = yield* goOnline(app, ada)
  yield* back.socket.request({ t: "channelJoin", channel })
  yield* back.socket.request({ t: "create", mode: "default" })
  yield* sql`
    insert into sign_in_steps (hash, environment_id, provider, player_id, sealed, expires_at)
    select id, environment_id, 'google', id, '', '2100-01-01' from players where id = ${ada.id}`
  yield* sql`
    insert into spent_answers (hash, tenant, player_id, fingerprint, sealed, expires_at)
    select id, environment_id, id, '', '', '2100-01-01' from players where id = ${ada.id}`
  yield* sql`
    insert into player_days (environment_id, day, player_id)
    select environment_id, '2026-11-20', id from players where id = ${ada.id} on conflict do nothing`
  return { ada: back, app, channel, made }
})

/** Waits until exactly these tables contain the player id. */
const waitUntilIn = Effect.fnUntraced(function* (
  { id }: OnlinePlayer,
  expected: ReadonlyArray<string>
) {
  const app = yield* TestApp
  const sql = yield* SqlClient.SqlClient
  const found = tablesWith(id).pipe(
    Effect.filterOrFail(
      (names) => names.toSorted().join() === expected.toSorted().join(),
      (names) => `found in ${names.join()}`
    ),
    Effect.provideService(SqlClient.SqlClient, sql)
  )
  yield* app.eventually(found, `the player is in ${expected.join()}`)
})

/** Keeps the actions of operators, before and after the deletion. */
const auditTable = "audit"

const allTables = [
  auditTable,
  ...playerTables.flatMap(({ deletion, table }) => (deletion === "retained" ? [] : [table]))
]

layer(App, { timeout: "120 seconds", excludeTestServices: true })("a player's data", (it) => {
  it.effect("lists every table that holds a player id", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const known = [...playerTables.map(({ table }) => table), ...tablesWithoutPlayers]
      assert.sameMembers(
        yield* tables,
        known,
        "declare a new table in the feature.ts of its feature, or add it here"
      )
      const columns = yield* sql<{ name: string }>`
        select table_name as name from information_schema.columns
        where table_schema = 'public' and column_name like '%player_id%'`
      for (const { name } of columns) assert.notInclude(tablesWithoutPlayers, name)
      const cascading = yield* sql<{ name: string }>`
        select distinct c.relname as name from pg_constraint k join pg_class c on c.oid = k.conrelid
        where k.contype = 'f' and k.confrelid = 'players'::regclass and k.confdeltype = 'c'`
      assert.sameMembers(
        cascading.map(({ name }) => name),
        playerTables.flatMap(({ deletion, table }) => (deletion === "cascade" ? [table] : []))
      )
    })
  )

  it.effect("exports a player completely, without data for operators only", () =>
    Effect.gen(function* () {
      const { ada, app, channel } = yield* busyPlayer
      yield* waitUntilIn(ada, allTables)
      const answer = yield* operate(app, "POST", `players/${ada.id}/export`)
      assert.strictEqual(answer.status, 200)
      const { body } = answer
      for (const property of contracts.flatMap((each) => Object.keys(each.exported ?? {}))) {
        assert.property(body, property)
      }
      for (const { exportedAs } of playerTables) {
        const part = exportedAs === null ? true : at(body, exportedAs)
        assert.isNotEmpty(JSON.stringify(part), String(exportedAs))
        assert.notInclude(["[]", "{}", "null", undefined], JSON.stringify(part), String(exportedAs))
      }
      assert.deepInclude(at(body, "player"), { id: ada.id, displayName: "Ada" })
      assert.deepInclude(at(body, "saves", 0), { key: "one", version: 1, data: { level: 3 } })
      assert.deepStrictEqual(at(body, "stats"), { score: 7 })
      assert.deepInclude(at(body, "rejectedStats", 0), { stat: "score", value: 1000 })
      assert.deepInclude(at(body, "sanctions", 0), { note: "note", active: false })
      assert.deepInclude(at(body, "appeals", 0), { message: "Please", status: "accepted" })
      assert.include(JSON.stringify(at(body, "channels")), channel)
      const age = { ageBand: "teen", declaredAgeBand: "teen", signalledAgeBand: "teen" }
      assert.deepInclude(at(body, "age"), age)
      assert.strictEqual(at(body, "news", "optIn"), true)
      assert.deepInclude(at(body, "identities", 2), { provider: "google", emailVerified: true })
      assert.strictEqual(at(body, "identities", 2, "subject"), `google-${ada.id}`)
      for (const secret of ["private", "$argon2id", "sealed", ada.refreshToken]) {
        assert.notInclude(JSON.stringify(body), secret)
      }
      const own = yield* play(app, ada, "GET", "players/me/export")
      assert.strictEqual(own.status, 200)
      // Entities write these parts asynchronously, so the two exports may differ in them.
      const moving = ["exportedAt", "lastSeenAt", "days", "rooms", "channels"]
      const same = Object.fromEntries(moving.map((part) => [part, at(body, part)]))
      assert.deepStrictEqual({ ...Object(own.body), ...same }, body)
    })
  )

  it.effect("deletes a player from every table, and closes its socket", () =>
    Effect.gen(function* () {
      const { ada, app, channel } = yield* busyPlayer
      const bob = yield* newPlayer(app, "Bob")
      yield* bob.socket.request({ t: "channelJoin", channel })
      yield* waitUntilIn(ada, allTables)
      const deleted = yield* operate(app, "POST", `players/${ada.id}/delete`)
      assert.deepStrictEqual(deleted.body, { deleted: true })
      assert.strictEqual((yield* ada.socket.closed).code, 4001)
      const left = yield* bob.socket.next("channel_player_left")
      assert.deepInclude(left, { playerId: ada.id, reason: "deleted" })
      yield* waitUntilIn(ada, ["deleted_players", auditTable])
      assert.strictEqual(codeOf(yield* refresh(app, ada.refreshToken)), "invalid_refresh_token")
      assert.strictEqual((yield* play(app, ada, "GET", "players/me")).status, 401)
      assert.strictEqual((yield* play(app, ada, "PUT", "saves/one", { data: 1 })).status, 401)
      const again = yield* authenticate(app, ada)
      assert.strictEqual((yield* again.socket.closed).code, 4001)
      assert.strictEqual((yield* play(app, ada, "GET", "players/me/export")).status, 401)
      for (const act of ["export", "delete", "ban"]) {
        const answer = yield* operate(app, "POST", `players/${ada.id}/${act}`, {})
        assert.strictEqual(codeOf(answer), "player_not_found", act)
      }
    })
  )

  it.effect("neither exports nor deletes the player's data of another environment", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const ada = yield* guest(app, "Ada")
      for (const act of ["export", "delete"]) {
        const answer = yield* operate(app.production, "POST", `players/${ada.id}/${act}`)
        assert.strictEqual(codeOf(answer), "player_not_found")
      }
      assert.strictEqual((yield* play(app, ada, "GET", "players/me")).status, 200)
    })
  )
})
