/**
 * Revocation across two runner processes: one revokes the session, the other holds its socket.
 * @module-tag long
 */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { TestDatabase } from "#testing/app"
import { configure, goOnline, guest, newPlayer } from "#testing/players"
import { startCluster } from "#testing/runners"
import { anotherDevice, inAppBrowser, stealSession } from "../../support/devices.ts"
import { codeOf, play, refresh } from "../../support/moderation-calls.ts"
import { DatabaseLive } from "../../support/service.ts"

describe("revocation on two runners", () => {
  it.live(
    "closes the sockets of a revoked session or deleted player on the other runner, and no others",
    () =>
      Effect.gen(function* () {
        const database = yield* TestDatabase
        const { runners, target } = yield* startCluster({ databaseUrl: database.url, size: 2 })
        const [here, there] = runners.map(({ url }) => ({ ...target, url }))
        if (here === undefined || there === undefined) return yield* Effect.die("No cluster")
        yield* configure(here, { features: { multiplayer: true }, ...inAppBrowser })
        const bystander = yield* newPlayer(there, "Bystander")
        const millis: Array<number> = []
        for (let round = 0; round < 5; round++) {
          const phone = yield* guest(here)
          const tablet = yield* anotherDevice(here, phone)
          const online = yield* goOnline(there, tablet)
          const start = yield* Clock.currentTimeMillis
          yield* stealSession(here, tablet)
          const closed = yield* online.socket.closed
          millis.push((yield* Clock.currentTimeMillis) - start)
          assert.deepStrictEqual([closed.code, closed.reason], [4001, "session_revoked"])
          // An access token stays valid over HTTP until it expires.
          assert.strictEqual((yield* play(there, tablet, "GET", "players/me")).status, 200)
          assert.strictEqual((yield* play(there, phone, "GET", "players/me")).status, 200)
        }
        assert.strictEqual((yield* bystander.socket.request({ t: "ping" }))["ok"], true)
        const proof = { refreshToken: bystander.refreshToken }
        const deleted = yield* play(here, bystander, "DELETE", "players/me", proof)
        assert.strictEqual(codeOf(deleted), "ok")
        assert.strictEqual((yield* bystander.socket.closed).code, 4001)
        const again = yield* refresh(there, bystander.refreshToken)
        assert.strictEqual(codeOf(again), "invalid_refresh_token")
        yield* Effect.log(`Sockets closed with 4001 after the revocation: ${millis.join(", ")} ms`)
      }).pipe(Effect.provide(DatabaseLive), Effect.scoped)
  )
})
