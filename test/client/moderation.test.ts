/**
 * A ban in the typed client against the real service: the connection closes for good, and the player
 * appeals.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { createClient, isError, memoryStorage } from "#client/client"
import { TestApp } from "#testing/app"
import { listen, rejection } from "../support/client/waits.ts"
import { ban, unban } from "../support/moderation-calls.ts"
import { AppLive } from "../support/service.ts"

const ask = <A>(call: () => Promise<A>) => Effect.promise(call)

const details = (error: unknown) =>
  isError(error, "player_banned") ? error.details : assert.fail(String(error))

layer(AppLive, { timeout: "120 seconds", excludeTestServices: true })("a banned client", (it) => {
  it.effect(
    "closes a banned client's connection, refuses its calls with the ban's details, and takes one appeal",
    () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        const storage = memoryStorage()
        const client = yield* Effect.acquireRelease(
          Effect.sync(() => createClient({ baseUrl: app.url, key: app.publishableKey, storage })),
          (open) => Effect.sync(() => open.close())
        )
        const player = yield* ask(() => client.sessions.guest({ displayName: "Ada" }))
        const room = yield* ask(() => client.rooms.create({ mode: "default" }))
        const closed = yield* listen(room, "closed")
        yield* ban(app, player.id, { publicNote: "Rest." })
        assert.deepStrictEqual(yield* Fiber.join(closed), { code: 4003, reason: "player_banned" })
        const write = yield* rejection(() => client.players.update({ displayName: "B" }))
        const { sanctionId } = details(write)
        assert.deepStrictEqual(details(write), { sanctionId, expiresAt: null, note: "Rest." })
        const call = yield* rejection(() => client.rooms.create({ mode: "default" }))
        assert.strictEqual(details(call).sanctionId, sanctionId)
        assert.isNull(client.sessions.player)
        const sanction = yield* ask(() => client.sessions.appeal("I am rested."))
        assert.strictEqual(sanction.id, sanctionId)
        const again = yield* rejection(() => client.sessions.appeal("Really."))
        assert.isTrue(isError(again, "already_appealed"))
        yield* unban(app, player.id)
        const late = yield* rejection(() => client.sessions.appeal("Thanks."))
        assert.isTrue(isError(late, "sanction_inactive"))
      })
  )

  it.effect("rejects a search with the ban, on the socket of the search and on a new one", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const open = { baseUrl: app.url, key: app.publishableKey }
      const clients = [memoryStorage(), memoryStorage()].map((storage) =>
        createClient({ ...open, storage })
      )
      yield* Effect.addFinalizer(() =>
        Effect.sync(() => clients.forEach((client) => client.close()))
      )
      const [searching, idle] = clients
      if (searching === undefined || idle === undefined) return yield* Effect.die("No clients")
      const player = yield* ask(() => searching.sessions.guest({ displayName: "Ada" }))
      yield* ask(() => searching.ping())
      const search = yield* Effect.forkChild(
        rejection(() => searching.rooms.quickMatch("default")),
        { startImmediately: true }
      )
      yield* ask(() => searching.ping())
      yield* ban(app, player.id, { publicNote: "Rest." })
      assert.strictEqual(details(yield* Fiber.join(search)).note, "Rest.")
      assert.isNull(searching.sessions.player)

      const other = yield* ask(() => idle.sessions.guest({ displayName: "Bob" }))
      yield* ban(app, other.id, { publicNote: "Rest, too." })
      const first = yield* rejection(() => idle.rooms.quickMatch("default"))
      assert.strictEqual(details(first).note, "Rest, too.")
    }).pipe(Effect.scoped)
  )
})
