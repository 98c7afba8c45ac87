/**
 * Effects of bans, age groups and deletions on live sockets, seats, channels
 * and tickets.
 */
import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlClient } from "effect/sql"
import { TestApp, TestDatabase } from "#testing/app"
import {
  at,
  authenticate,
  guest,
  newPlayer,
  type OnlinePlayer,
  type TestTarget
} from "#testing/players"
import { receivedTypes, manage, uniqueName } from "../../support/channel-calls.ts"
import { ban, operate, refresh, unban } from "../../support/moderation-calls.ts"
import { AppLive, DatabaseLive } from "../../support/service.ts"
import { openRoom } from "../../support/opened-room.ts"

const ok = Effect.fnUntraced(function* (player: OnlinePlayer, frame: object) {
  const reply = yield* player.socket.request(frame)
  assert.strictEqual(reply["ok"], true, JSON.stringify(reply))
  return reply
})

/** Puts two players into a room and a server-managed channel. */
const together = Effect.gen(function* () {
  const app = yield* TestApp
  const channel = yield* uniqueName
  yield* manage(app, "PUT", channel, {})
  const ada = yield* newPlayer(app, "Ada")
  const bob = yield* newPlayer(app, "Bob")
  const { roomId } = yield* openRoom([ada, bob])
  for (const player of [ada, bob]) yield* ok(player, { t: "channelJoin", channel })
  return { app, ada, bob, channel, roomId }
})

const closedWith = Effect.fnUntraced(function* ({ socket }: OnlinePlayer, code: number) {
  const closed = yield* socket.closed
  assert.strictEqual(closed.code, code, closed.reason)
  return closed.reason
})

layer(AppLive, { timeout: "120 seconds", excludeTestServices: true })("a ban", (it) => {
  it.effect("closes a banned player's socket with 4003; room and channel report it once", () =>
    Effect.gen(function* () {
      const { ada, app, bob, channel } = yield* together
      yield* ban(app, ada.id)
      assert.strictEqual(yield* closedWith(ada, 4003), "player_banned")
      const left = yield* bob.socket.next("player_left")
      assert.deepInclude(left, { playerId: ada.id, reason: "banned" })
      const host = yield* bob.socket.next("host_changed")
      assert.deepInclude(host, { hostId: bob.id, reason: "banned" })
      const gone = yield* bob.socket.next("channel_player_left")
      assert.deepInclude(gone, { channel, playerId: ada.id, reason: "banned" })
      yield* ok(bob, { t: "ping" })
      assert.notInclude(receivedTypes(bob), "player_disconnected")
      assert.strictEqual(receivedTypes(bob).filter((t) => t === "player_left").length, 1)
    })
  )

  it.effect(
    "ends the seat and the channel membership of a banned player whose socket is gone",
    () =>
      Effect.gen(function* () {
        const { ada, app, bob, channel, roomId } = yield* together
        yield* ada.socket.terminate
        yield* bob.socket.next("player_disconnected")
        yield* ban(app, ada.id)
        const left = yield* bob.socket.next("player_left")
        assert.deepInclude(left, { playerId: ada.id, reason: "banned" })
        const gone = yield* bob.socket.next("channel_player_left")
        assert.deepInclude(gone, { channel, playerId: ada.id, reason: "banned" })
        yield* unban(app, ada.id)
        const back = yield* authenticate(app, ada)
        yield* back.socket.next("welcome")
        const resumed = yield* back.socket.request({ t: "resume", roomId })
        assert.strictEqual(at(resumed, "error", "code"), "resume_expired")
      })
  )

  it.effect("rejects new sockets of a banned player until the ban is lifted", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const ada = yield* guest(app, "Ada")
      yield* ban(app, ada.id)
      assert.strictEqual(yield* closedWith(yield* authenticate(app, ada), 4003), "player_banned")
      yield* unban(app, ada.id)
      const back = yield* authenticate(app, ada)
      yield* back.socket.next("welcome")
    })
  )

  it.effect("removes a banned player's ticket, so that nobody is matched with it", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const ada = yield* newPlayer(app, "Ada")
      yield* ada.socket.send({ t: "quickMatch", mode: "default", rid: "q" })
      // This command follows the ticket, which is therefore in its queue by now.
      const twice = yield* ada.socket.request({ t: "quickMatch", mode: "default" })
      assert.strictEqual(at(twice, "error", "code"), "already_matching")
      yield* ban(app, ada.id)
      yield* closedWith(ada, 4003)
      const bob = yield* newPlayer(app, "Bob")
      const cleo = yield* newPlayer(app, "Cleo")
      const matched = yield* Effect.all(
        [bob, cleo].map((player) => ok(player, { t: "quickMatch", mode: "default" })),
        { concurrency: 2 }
      )
      const [one, two] = matched.map((reply) => at(reply, "data", "roomId"))
      assert.strictEqual(one, two)
      const joined = yield* cleo.socket.next("room_joined")
      assert.notInclude(JSON.stringify(at(joined, "room", "players")), ada.id)
    })
  )

  it.effect("disconnects a banned player who is connecting, refreshing or playing", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const attempt = Effect.gen(function* () {
        const ada = yield* guest(app, "Ada")
        const [online] = yield* Effect.all(
          [authenticate(app, ada), ban(app, ada.id), refresh(app, ada.refreshToken)],
          { concurrency: "unbounded" }
        )
        yield* closedWith(online, 4003)
      })
      yield* Effect.all(
        Array.from({ length: 20 }, () => Effect.scoped(attempt)),
        {
          concurrency: 5
        }
      )
    })
  )
})

layer(AppLive, { timeout: "120 seconds", excludeTestServices: true })("an age group", (it) => {
  const setAge = (app: TestApp["Service"], playerId: string, band: unknown) =>
    operate(app, "PUT", `players/${playerId}/age`, { band })

  it.effect("lets the operator set any age band, and returns the resulting capabilities", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const ada = yield* guest(app, "Ada")
      for (const [ageBand, grown] of [
        ["child", false],
        ["adult", true],
        ["teen", true]
      ] as const) {
        const answer = yield* setAge(app, ada.id, ageBand)
        assert.deepStrictEqual(answer.body, {
          ageBand,
          declaredAgeBand: ageBand,
          capabilities: {
            directConnections: grown,
            voice: grown,
            openChat: grown,
            showName: grown,
            news: grown
          }
        })
      }
      for (const band of ["baby", null, 12]) {
        assert.strictEqual((yield* setAge(app, ada.id, band)).status, 400)
      }
      const nobody = yield* setAge(app, `pl_${"0".repeat(26)}`, "teen")
      assert.strictEqual(at(nobody.body, "error", "code"), "player_not_found")
    })
  )

  it.effect("removes a player who becomes a child from player-created channels at once", () =>
    Effect.gen(function* () {
      const { ada, app, bob, channel } = yield* together
      const made = yield* ok(bob, { t: "channelCreate" })
      const theirs = String(at(made, "data", "channel"))
      yield* ok(ada, { t: "channelJoin", channel: theirs })
      yield* setAge(app, ada.id, "child")
      const closed = yield* ada.socket.next("channel_closed")
      assert.deepInclude(closed, { channel: theirs, reason: "kicked" })
      const again = yield* ada.socket.request({ t: "channelJoin", channel: theirs })
      assert.strictEqual(at(again, "error", "code"), "channel_forbidden")
      yield* ok(ada, { t: "channelSend", channel, type: "hello" })
      yield* setAge(app, ada.id, "teen")
      yield* app.eventually(
        Effect.map(
          ada.socket.request({ t: "channelJoin", channel: theirs }),
          (reply) => reply["ok"] === true
        ),
        "a teen may come in"
      )
    })
  )
})

const Listening = Layer.mergeAll(
  TestApp.layerWith(),
  Layer.unwrap(
    Effect.map(TestDatabase, ({ url }) =>
      Layer.effect(SqlClient.SqlClient, PgClient.make({ url: Redacted.make(url) }))
    )
  ).pipe(Layer.provide(Reactivity.layer))
).pipe(Layer.provide(DatabaseLive))

layer(Listening, { timeout: "120 seconds", excludeTestServices: true })("a node", (it) => {
  it.effect("closes a banned player's socket after the node missed the notification", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const sql = yield* SqlClient.SqlClient
      const ada = yield* newPlayer(app, "Ada")
      const bob = yield* newPlayer(app, "Bob")
      yield* sql`
        insert into sanctions (id, environment_id, player_id, created_at)
        select ${`snc_${"0".repeat(26)}`}, environment_id, id, now() from players
        where id = ${ada.id}`
      yield* ok(ada, { t: "ping" })
      const ended = yield* sql`
        select pg_terminate_backend(pid, 5000) from pg_stat_activity
        where datname = current_database() and query ilike 'listen%'`
      assert.isAtLeast(ended.length, 1)
      assert.strictEqual(yield* closedWith(ada, 4003), "player_banned")
      yield* ok(bob, { t: "ping" })
    })
  )

  it.effect(
    "ends the seat of a banned player without a socket after the node missed the notification",
    () =>
      Effect.gen(function* () {
        const { ada, bob, channel } = yield* together
        const sql = yield* SqlClient.SqlClient
        yield* ada.socket.terminate
        yield* bob.socket.next("player_disconnected")
        yield* sql`
        insert into sanctions (id, environment_id, player_id, created_at)
        select ${`snc_${"2".repeat(26)}`}, environment_id, id, now() from players where id = ${ada.id}`
        yield* sql`select pg_notify('svc_invalidation', '{"kind":"everything","id":""}')`
        const left = yield* bob.socket.next("player_left")
        assert.deepInclude(left, { playerId: ada.id, reason: "banned" })
        const gone = yield* bob.socket.next("channel_player_left")
        assert.deepInclude(gone, { channel, playerId: ada.id, reason: "banned" })
      })
  )

  it.effect("closes a banned player's socket after the node failed to read its sanctions", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const sql = yield* SqlClient.SqlClient
      const ada = yield* newPlayer(app, "Ada")
      const bob = yield* newPlayer(app, "Bob")
      yield* sql`alter table sanctions rename to sanctions_away`
      const [{ since } = { since: "" }] = yield* sql<{ readonly since: string }>`
        select clock_timestamp()::text as since`
      yield* sql`
        select pg_notify('svc_invalidation', json_build_object(
          'kind', 'player', 'id', environment_id || '/' || id)::text)
        from players where id = ${ada.id}`
      const failed = sql`
        select pid from pg_stat_activity where datname = current_database()
          and pid <> pg_backend_pid() and query like '%declared_age_band, s.id%' and state = 'idle'
          and query_start > ${since}::timestamptz`
      while ((yield* failed).length === 0) yield* Effect.yieldNow
      yield* sql.withTransaction(
        Effect.andThen(
          sql`alter table sanctions_away rename to sanctions`,
          sql`
            insert into sanctions (id, environment_id, player_id, created_at)
            select ${`snc_${"1".repeat(26)}`}, environment_id, id, now() from players
            where id = ${ada.id}`
        )
      )
      assert.strictEqual(yield* closedWith(ada, 4003), "player_banned")
      yield* ok(bob, { t: "ping" })
    })
  )

  for (const [reason, code, end] of [
    ["banned", 4003, (app: TestTarget, id: string) => ban(app, id)],
    ["deleted", 4001, (app: TestTarget, id: string) => operate(app, "POST", `players/${id}/delete`)]
  ] as const) {
    it.effect(`gives no seat to a player who is ${reason} while the match is made`, () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        const sql = yield* SqlClient.SqlClient
        const ada = yield* newPlayer(app, "Ada")
        const bob = yield* newPlayer(app, "Bob")
        const roomOpens = sql`
          select pid from pg_locks where relation = 'rooms'::regclass and not granted`
        yield* sql.withTransaction(
          Effect.gen(function* () {
            yield* sql`lock table rooms in share mode`
            for (const { socket } of [ada, bob]) {
              yield* socket.send({ t: "quickMatch", mode: "default", rid: "match" })
            }
            while ((yield* roomOpens).length === 0) yield* Effect.yieldNow
            yield* end(app, ada.id)
            yield* closedWith(ada, code)
          })
        )
        const joined = yield* bob.socket.next("room_joined")
        if (JSON.stringify(at(joined, "room", "players")).includes(ada.id)) {
          const left = yield* bob.socket.next("player_left")
          assert.deepInclude(left, { playerId: ada.id, reason })
        }
        assert.notInclude(receivedTypes(bob), "player_disconnected")
      })
    )
  }
})
