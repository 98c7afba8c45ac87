/**
 * Resource leaks: after players connect, play and disconnect in several ways, every gauge of the service and
 * every timer and handle of the process returns to its earlier value.
 * @module-tag long
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { poolLayer } from "#sql/database"
import { TestApp, TestDatabase } from "#testing/app"
import { at, configure, newPlayer, request } from "#testing/players"
import { connectAnonymously } from "../support/channel-calls.ts"
import { ban } from "../support/moderation-calls.ts"
import { DatabaseLive } from "../support/service.ts"
import { openRoom } from "../support/opened-room.ts"

const App = Layer.merge(
  TestApp.layerWith(),
  Layer.unwrap(
    Effect.map(TestDatabase, ({ url }) => poolLayer({ url: Redacted.make(url), connections: 1 }))
  )
).pipe(Layer.provide(DatabaseLive))

/** Gauges of the resources that a node holds. */
const gauges = [
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
const gaugeLine = new RegExp(`^(svc_(?:${gauges.join("|")})(?:\\{.*\\})?) (\\S+)$`, "gm")

const readings = Effect.gen(function* () {
  const { url } = yield* TestApp
  const { body } = yield* request(`${url}/metrics`)
  return Object.fromEntries(
    Array.from(String(body).matchAll(gaugeLine), ([, name = "", value]) => [name, Number(value)])
  )
})

/** Counts of the timers, sockets and other handles of this process, by kind. */
const handles = () => {
  const counts: Record<string, number> = {}
  for (const kind of process.getActiveResourcesInfo()) counts[kind] = (counts[kind] ?? 0) + 1
  return counts
}

/** Number of Postgres sessions in LISTEN. */
const listeners = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql`
    select count(*)::int as count from pg_stat_activity
    where datname = current_database() and query ilike 'listen%'`
  return at(rows, 0, "count")
})

/** Three players and a listener use rooms, matchmaking and channels, and disconnect in four ways. */
const playAndLeave = Effect.fnUntraced(function* (index: number) {
  const app = yield* TestApp
  const ada = yield* newPlayer(app)
  const bob = yield* newPlayer(app)
  const eve = yield* newPlayer(app)
  const listener = yield* connectAnonymously(app)
  yield* openRoom([ada, bob], { mode: "duel" })
  yield* bob.socket.request({ t: "setMyState", patch: { index } })
  yield* eve.socket.send({ t: "quickMatch", mode: "duel" })
  const created = yield* ada.socket.request({ t: "channelCreate" })
  yield* bob.socket.request({ t: "channelJoin", channel: at(created, "data", "channel") })
  yield* listener.request({ t: "channelJoin", channel: "missing" })
  yield* bob.socket.sendText("{")
  if (index % 3 === 0) yield* ban(app, ada.id)
  if (index % 3 === 1) yield* ada.socket.request({ t: "leave" })
  if (index % 3 === 2) yield* ada.socket.close()
  yield* bob.socket.terminate
  yield* eve.socket.close()
  yield* listener.close()
})

const playRounds = (count: number) =>
  Effect.forEach(
    Array.from({ length: count }, (_, index) => index),
    (index) => Effect.scoped(playAndLeave(index)),
    { concurrency: 5, discard: true }
  )

/** Advances the test clock until no gauge exceeds its earlier value. */
const awaitReleased = Effect.fnUntraced(function* (before: Readonly<Record<string, number>>) {
  const app = yield* TestApp
  const released = Effect.gen(function* () {
    yield* TestClock.adjust("10 seconds")
    const now = yield* readings
    const excess = Object.entries(now).filter(([name, value]) => value > (before[name] ?? 0))
    return excess.length === 0 ? true : yield* Effect.fail(JSON.stringify(excess))
  })
  yield* app.eventually(
    Effect.provideService(released, TestApp, app),
    "the service has released everything"
  )
})

layer(App, { timeout: "120 seconds" })("the service", (it) => {
  it.effect(
    "releases sockets, rooms, tickets, sessions, timers and listeners when players leave",
    () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        const modes = [{ key: "duel", minPlayers: 2, maxPlayers: 2, fillTimeoutSeconds: 0 }]
        const features = { multiplayer: true, realtimeChannels: true }
        yield* configure(app, { features, multiplayer: { modes } })
        const empty = yield* readings
        assert.isAtLeast(Object.keys(empty).length, 10)
        yield* playRounds(5)
        yield* awaitReleased(empty)
        const before = {
          readings: yield* readings,
          handles: handles(),
          listeners: yield* listeners
        }
        yield* playRounds(30)
        yield* awaitReleased(before.readings)
        assert.strictEqual(yield* listeners, before.listeners)
        const after = handles()
        for (const kind of ["Timeout", "Immediate", "TCPServerWrap", "PipeWrap", "FSReqCallback"]) {
          assert.isAtMost(after[kind] ?? 0, (before.handles[kind] ?? 0) + 2, kind)
        }
      })
  )
})
