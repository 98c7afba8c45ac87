/** Guests who cannot come back are deleted 30 days after their last refresh token has expired. */
import { assert, layer } from "@effect/vitest"
import { DateTime, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { ExpiredGuestRepository } from "#sql/player-data/expired-guests"
import { nodeWith, SharedDatabase } from "../../support/http-stack.ts"
import { newGame } from "../../support/players.ts"

const Node = nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer))

/** Moves the player and its sessions into the past. */
const age = Effect.fnUntraced(function* (playerId: string, days: number) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    update players set created_at = created_at - make_interval(days => ${days}::int)
    where id = ${playerId}`
  yield* sql`
    update sessions set expires_at = expires_at - make_interval(days => ${days}::int)
    where player_id = ${playerId}`
})

/**
 * Lets hours pass until a player is gone. The sweep waits an hour from the end of the one before, which may still
 * be under way when the first hour has passed.
 */
const untilGone = Effect.fnUntraced(function* (playerId: string) {
  const sql = yield* SqlClient.SqlClient
  const isGone = Effect.map(
    sql`select 1 from players where id = ${playerId}`,
    ({ length }) => length === 0
  )
  const isSwept = Effect.repeat(isGone, { until: (gone) => gone, times: 500 })
  yield* Effect.repeat(Effect.andThen(TestClock.adjust("1 hour"), isSwept), {
    until: (gone) => gone
  })
})

const isLeft = Effect.fnUntraced(function* (playerId: string) {
  const sql = yield* SqlClient.SqlClient
  return (yield* sql`select 1 from players where id = ${playerId}`).length === 1
})

const game = { features: { saves: true, emailLogin: true } }

layer(Node)("guests who cannot come back", (it) => {
  it.effect("deletes guests who cannot come back with all data, and nobody else", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { newPlayer, player } = yield* newGame(game)
      const [linked, recent, active] = [yield* newPlayer, yield* newPlayer, yield* newPlayer]
      yield* player.ask("PUT", "/v1/saves/slot", { data: 1 })
      const email = { email: "ada@example.com", password: "correct horse" }
      assert.strictEqual((yield* linked.ask("POST", "/v1/auth/link/email", email)).status, 200)
      // A refresh token lasts 90 days.
      for (const { id } of [player, linked]) yield* age(id, 121)
      yield* age(recent.id, 119)
      yield* untilGone(player.id)
      for (const { id } of [linked, recent, active]) assert.isTrue(yield* isLeft(id), id)
      assert.lengthOf(yield* sql`select 1 from saves where player_id = ${player.id}`, 0)
      assert.lengthOf(yield* sql`select 1 from deleted_players where id = ${player.id}`, 1)
    })
  )

  it.effect("keeps a guest with one session that has not expired for 30 days", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { newPlayer, player } = yield* newGame(game)
      const other = yield* newPlayer
      yield* age(player.id, 200)
      yield* age(other.id, 200)
      yield* sql`
        insert into sessions (id, environment_id, player_id, token_hash, rotated_at, expires_at,
          created_at)
        select id || 'X', environment_id, player_id, 'x', rotated_at,
          expires_at + interval '100 days', created_at
        from sessions where player_id = ${player.id}`
      yield* untilGone(other.id)
      assert.isTrue(yield* isLeft(player.id))
    })
  )

  it.effect("leaves the sweep of expired guests to the process that has claimed it", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { player } = yield* newGame(game)
      yield* sql`update sweep_claims set claimed_until = 'infinity'`
      yield* age(player.id, 200)
      // The process whose claim it is deletes this one, and the sweep here has had its turn.
      const repository = yield* ExpiredGuestRepository
      const now = yield* DateTime.now
      assert.isFalse(yield* repository.claim({ now, until: DateTime.add(now, { hours: 1 }) }))
      yield* TestClock.adjust("1 hour")
      assert.isTrue(yield* isLeft(player.id))
      yield* sql`update sweep_claims set claimed_until = 'epoch'`
      yield* untilGone(player.id)
    })
  )
})
