/** Config pushes reach open sockets also after a push that a node could not read. */
import { assert, it } from "@effect/vitest"
import { PgConnection } from "@effect/sql-pg"
import { Effect, Layer, Redacted, Schedule } from "effect"
import { TestApp, TestDatabase } from "#testing/app"
import { at, configure, goOnline, guest } from "#testing/players"
import { connectSocket } from "#testing/socket-client"
import { DatabaseLive } from "../support/service.ts"

const everything = { version: 1, features: { multiplayer: true, realtimeChannels: true } }
const schedule = Schedule.spaced(20)

const ServiceLive = TestApp.layerWith().pipe(Layer.provideMerge(DatabaseLive))

it.live("applies a push to open sockets after the database has failed for one", () =>
  Effect.gen(function* () {
    const app = yield* TestApp
    const { url } = yield* TestDatabase
    const session = yield* PgConnection.make({ url: Redacted.make(url) })
    yield* configure(app.production, everything)
    const { socket } = yield* goOnline(app.production, yield* guest(app.production))
    const codeOf = Effect.map(socket.request({ t: "create", mode: "unknown" }), (reply) =>
      at(reply, "error", "code")
    )
    const until = (isReached: (code: unknown) => boolean) =>
      Effect.repeat(codeOf, { schedule, until: isReached }).pipe(Effect.timeout("20 seconds"))
    assert.strictEqual(yield* codeOf, "mode_not_found")
    yield* session.query("alter table configs rename to configs_away")
    yield* session.query(
      `select pg_notify('svc_invalidation', json_build_object('kind', 'config', 'id', environment_id)::text)
         from configs_away`
    )
    yield* until((code) => code !== "mode_not_found")
    yield* session.query("alter table configs_away rename to configs")
    yield* configure(app.production, { version: 1, features: { realtimeChannels: true } })
    yield* until((code) => code === "feature_disabled")
  }).pipe(Effect.scoped, Effect.provide(ServiceLive))
)

it.live("applies a push to a socket that is being admitted", () =>
  Effect.gen(function* () {
    const app = yield* TestApp
    const { url } = yield* TestDatabase
    const session = yield* PgConnection.make({ url: Redacted.make(url) })
    const looks = yield* PgConnection.make({ url: Redacted.make(url) })
    yield* configure(app.production, everything)
    const player = yield* guest(app.production)
    const early = yield* goOnline(app.production, yield* guest(app.production))
    const codeOf = (socket: typeof early.socket) =>
      Effect.map(socket.request({ t: "create", mode: "unknown" }), (reply) =>
        at(reply, "error", "code")
      )
    yield* session.query("begin")
    yield* session.query("lock table rooms in access exclusive mode")
    const late = yield* connectSocket(app.socketUrl)
    const { publishableKey: key } = app.production
    yield* late.send({ t: "auth", key, token: player.accessToken })
    // The player's session looks for the seat that the player may have.
    const waits = looks.query(
      "select from pg_stat_activity where wait_event_type = 'Lock' and query like '%members &&%'"
    )
    yield* Effect.repeat(waits, { schedule, until: ({ rows }) => rows.length > 0 })
    yield* configure(app.production, { version: 1, features: { realtimeChannels: true } })
    yield* Effect.repeat(codeOf(early.socket), {
      schedule,
      until: (code) => code === "feature_disabled"
    })
    yield* session.query("rollback")
    yield* late.next("welcome")
    yield* Effect.repeat(codeOf(late), { schedule, until: (code) => code === "feature_disabled" })
  }).pipe(Effect.timeout("30 seconds"), Effect.scoped, Effect.provide(ServiceLive))
)
