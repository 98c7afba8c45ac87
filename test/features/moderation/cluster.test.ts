/** Bans and players who are away, with two runner processes. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { newPlayer } from "#testing/players"
import { ban, codeOf, play, unban } from "../../support/moderation-calls.ts"
import { live } from "../../support/security/security-harness.ts"
import { TwoRunners } from "../../support/two-runners.ts"
import { openRoom } from "../../support/opened-room.ts"

layer(TwoRunners.layerWith(), live)("a ban on two runners", (it) => {
  it.effect(
    "ends a disconnected player's seat on the other runner, and lifts the ban on both",
    () =>
      Effect.gen(function* () {
        const { at1, at2 } = yield* TwoRunners
        const host = yield* newPlayer(at1, "Host")
        const player = yield* newPlayer(at2, "Player")
        yield* openRoom([host, player])
        yield* player.socket.terminate
        yield* host.socket.next("player_disconnected")
        yield* ban(at2, player.id)
        assert.strictEqual((yield* host.socket.next("player_left"))["reason"], "banned")
        yield* unban(at1, player.id)
        const write = play(at2, player, "PATCH", "players/me", { displayName: "X" })
        const free = Effect.repeat(write, { until: (answer) => codeOf(answer) === "ok" })
        yield* Effect.timeout(free, "5 seconds")
      }),
    { tags: "long" }
  )

  it.effect(
    "closes the player's socket on a runner that wakes after the ban was lifted",
    () =>
      Effect.gen(function* () {
        const { at1, at2, second } = yield* TwoRunners
        const host = yield* newPlayer(at1, "Host")
        const player = yield* newPlayer(at2, "Player")
        yield* openRoom([host, player])
        yield* second.signal("SIGSTOP")
        yield* ban(at1, player.id)
        yield* unban(at1, player.id)
        yield* second.signal("SIGCONT")
        const { code, reason } = yield* player.socket.closed
        assert.deepStrictEqual([code, reason], [4003, "player_banned"])
        assert.strictEqual((yield* host.socket.next("player_left"))["reason"], "banned")
      }),
    { tags: "long" }
  )
})
