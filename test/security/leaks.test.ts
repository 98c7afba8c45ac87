/**
 * Nothing leaks: after a crowd that came, played, broke off and went, everything that the service counts
 * is where it was before, and so are the timers and handles of the process.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { poolLayer } from "#sql/database"
import { TestApp, TestDatabase } from "#testing/app"
import { at, configure, newPlayer, request } from "#testing/players"
import { anonymous } from "../support/channel-calls.ts"
import { ban } from "../support/moderation-calls.ts"
import { DatabaseLive } from "../support/service.ts"

const App = Layer.merge(
  TestApp.layerWith(),
  Layer.unwrap(
    Effect.map(TestDatabase, ({ url }) => poolLayer({ url: Redacted.make(url), connections: 1 }))
  )
).pipe(Layer.provide(DatabaseLive))

/** What a node holds at a time. */
const kinds = [
  "sockets",
  "rooms",
  "room_members",
  "channels",
  "channel_members",
  "queues",
  "queue_tickets",
  "player_sessions",
  "snapshots_waiting",
  "cluster_entities"
]
const held = new RegExp(`^(svc_(?:${kinds.join("|")})(?:\\{.*\\})?) (\\S+)$`, "gm")

const readings = Effect.gen(function* () {
  const { url } = yield* TestApp
  const { body } = yield* request(`${url}/metrics`)
  return Object.fromEntries(
    Array.from(String(body).matchAll(held), ([, name = "", value]) => [name, Number(value)])
  )
})

/** Timers, sockets and other handles of this process, by kind. */
const handles = () => {
  const counts: Record<string, number> = {}
  for (const kind of process.getActiveResourcesInfo()) counts[kind] = (counts[kind] ?? 0) + 1
  return counts
}

/** Sessions of Postgres that wait for news. */
const listeners = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql`
    select count(*)::int as count from pg_stat_activity
    where datname = current_database() and query ilike 'listen%'`
  return at(rows, 0, "count")
})

/** Players who do everything there is to do, and leave in every way there is. */
const crowd = Effect.fnUntraced(function* (index: number) {
  const app = yield* TestApp
  const ada = yield* newPlayer(app)
  const bob = yield* newPlayer(app)
  const eve = yield* newPlayer(app)
  const listener = yield* anonymous(app)
  const made = yield* ada.socket.ask({ t: "create", mode: "duel" })
  yield* bob.socket.ask({ t: "join", roomId: at(made, "data", "roomId") })
  yield* bob.socket.ask({ t: "setMyState", patch: { index } })
  yield* eve.socket.say({ t: "quickMatch", mode: "duel" })
  const created = yield* ada.socket.ask({ t: "channelCreate" })
  yield* bob.socket.ask({ t: "channelJoin", channel: at(created, "data", "channel") })
  yield* listener.ask({ t: "channelJoin", channel: "nowhere" })
  yield* bob.socket.sayText("{")
  if (index % 3 === 0) yield* ban(app, ada.id)
  if (index % 3 === 1) yield* ada.socket.ask({ t: "leave" })
  if (index % 3 === 2) yield* ada.socket.close()
  yield* bob.socket.terminate
  yield* eve.socket.close()
  yield* listener.close()
})

const crowds = (count: number) =>
  Effect.forEach(
    Array.from({ length: count }, (_, index) => index),
    (index) => Effect.scoped(crowd(index)),
    { concurrency: 5, discard: true }
  )

/** Waits, on the service's time, until it holds what it held. */
const until = Effect.fnUntraced(function* (before: Readonly<Record<string, number>>) {
  const app = yield* TestApp
  const same = Effect.gen(function* () {
    yield* TestClock.adjust("10 seconds")
    const now = yield* readings
    const more = Object.entries(now).filter(([name, value]) => value > (before[name] ?? 0))
    return more.length === 0 ? true : yield* Effect.fail(JSON.stringify(more))
  })
  yield* app.eventually(Effect.provideService(same, TestApp, app), "the service holds no more")
})

layer(App, { timeout: "60 seconds" })("a service that a crowd has left", (it) => {
  it.effect(
    "holds no more than before: sockets, rooms, tickets, sessions, timers, listeners",
    () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        const modes = [{ key: "duel", minPlayers: 2, maxPlayers: 2, fillTimeoutSeconds: 0 }]
        const features = { multiplayer: true, realtimeChannels: true }
        yield* configure(app, { features, multiplayer: { modes } })
        const empty = yield* readings
        assert.isAtLeast(Object.keys(empty).length, 10)
        yield* crowds(5)
        yield* until(empty)
        const before = {
          readings: yield* readings,
          handles: handles(),
          listeners: yield* listeners
        }
        yield* crowds(30)
        yield* until(before.readings)
        assert.strictEqual(yield* listeners, before.listeners)
        const after = handles()
        for (const kind of ["Timeout", "Immediate", "TCPServerWrap", "PipeWrap", "FSReqCallback"]) {
          assert.isAtMost(after[kind] ?? 0, (before.handles[kind] ?? 0) + 2, kind)
        }
      }),
    60_000
  )
})
