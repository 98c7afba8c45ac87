/**
 * Signing out on two runner processes: the session is ended on one, its socket is on the other (spec
 * section 3).
 */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { TestDatabase } from "#testing/app"
import { configure, goOnline, guest, newPlayer } from "#testing/players"
import { startCluster } from "#testing/runners"
import { anotherDevice, inAppBrowser, logout } from "../../support/devices.ts"
import { codeOf, play, refresh } from "../../support/moderation-calls.ts"
import { DatabaseLive } from "../../support/service.ts"

describe("signing out on two runners", { timeout: 90_000 }, () => {
  it.live("closes the sockets of the session on the other, and no others; so does a deletion", () =>
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
        const asked = yield* Clock.currentTimeMillis
        yield* logout(here, tablet)
        const closed = yield* online.socket.closed
        millis.push((yield* Clock.currentTimeMillis) - asked)
        assert.deepStrictEqual([closed.code, closed.reason], [4001, "session_revoked"])
        // An open access token keeps working until it ends (spec section 5, rule 6).
        assert.strictEqual((yield* play(there, tablet, "GET", "players/me")).status, 200)
        assert.strictEqual((yield* play(there, phone, "GET", "players/me")).status, 200)
      }
      assert.strictEqual((yield* bystander.socket.ask({ t: "ping" }))["ok"], true)
      const proof = { refreshToken: bystander.refreshToken }
      const deleted = yield* play(here, bystander, "DELETE", "players/me", proof)
      assert.strictEqual(codeOf(deleted), "ok")
      assert.strictEqual((yield* bystander.socket.closed).code, 4001)
      const again = yield* refresh(there, bystander.refreshToken)
      assert.strictEqual(codeOf(again), "invalid_refresh_token")
      yield* Effect.log(`4001 after the sign-out's call: ${millis.join(", ")} ms`)
    }).pipe(Effect.provide(DatabaseLive), Effect.scoped)
  )
})
