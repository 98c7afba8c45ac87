/** Sockets whose credentials cannot be checked, since the database does not respond as it should. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { RpcClient, RpcSerialization } from "effect/rpc"
import { Socket } from "effect/socket"
import { SqlClient } from "effect/sql"
import { RealtimeRpcs } from "#rpc/realtime"
import { TestApp } from "#testing/app"
import { authenticate, guest } from "#testing/players"
import { appWithSql } from "../support/devices.ts"

/** Runs an effect while the look-ups of players fail. */
const withoutPlayers = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    return yield* Effect.acquireUseRelease(
      sql`alter table players rename to hidden_players`,
      () => effect,
      () => Effect.orDie(sql`alter table hidden_players rename to players`)
    )
  })

layer(appWithSql(), { timeout: "120 seconds", excludeTestServices: true })(
  "a fault of the database during admission",
  (it) => {
    it.effect("closes a socket with 1012, and its player returns with the same token", () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        const player = yield* guest(app)
        yield* withoutPlayers(
          Effect.gen(function* () {
            const { socket } = yield* authenticate(app, player)
            const warning = yield* socket.next("warn")
            assert.strictEqual(warning["code"], "unavailable")
            assert.deepStrictEqual(yield* socket.closed, { code: 1012, reason: "unavailable" })
          })
        )
        const { socket } = yield* authenticate(app, player)
        yield* socket.next("welcome")
      })
    )

    it.effect("ends an events stream of native RPC with `unavailable`", () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        const { accessToken } = yield* guest(app)
        const protocol = RpcClient.layerProtocolSocket().pipe(
          Layer.provide(Socket.layerWebSocket(`${app.url.replace("http", "ws")}/v1/rpc`)),
          Layer.provide(Socket.layerWebSocketConstructorGlobal),
          Layer.provide(RpcSerialization.layerJson)
        )
        const client = yield* Effect.provide(
          RpcClient.make(RealtimeRpcs),
          yield* Layer.build(protocol)
        )
        const headers = {
          "x-svc-key": app.publishableKey,
          authorization: `Bearer ${accessToken}`
        }
        const error = yield* withoutPlayers(
          Effect.flip(Stream.runDrain(client.events(undefined, { headers })))
        )
        assert.strictEqual(error._tag, "unavailable")
      })
    )
  }
)
