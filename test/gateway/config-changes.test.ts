/** Config pushes reach open sockets also after a push that a node could not read. */
import { assert, it } from "@effect/vitest"
import { PgConnection } from "@effect/sql-pg"
import { Effect, Layer, Redacted, Schedule } from "effect"
import { TestApp, TestDatabase } from "#testing/app"
import { at, configure, goOnline, guest } from "#testing/players"
import { DatabaseLive } from "../support/service.ts"

const ServiceLive = TestApp.layerWith().pipe(Layer.provideMerge(DatabaseLive))

it.live("applies a push to open sockets after the database has failed for one", () =>
  Effect.gen(function* () {
    const app = yield* TestApp
    const { url } = yield* TestDatabase
    const session = yield* PgConnection.make({ url: Redacted.make(url) })
    yield* configure(app.production, {
      version: 1,
      features: { multiplayer: true, realtimeChannels: true }
    })
    const { socket } = yield* goOnline(app.production, yield* guest(app.production))
    const codeOf = Effect.map(socket.request({ t: "create", mode: "unknown" }), (reply) =>
      at(reply, "error", "code")
    )
    const until = (isReached: (code: unknown) => boolean) =>
      Effect.repeat(codeOf, { schedule: Schedule.spaced(20), until: isReached }).pipe(
        Effect.timeout("20 seconds")
      )
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
