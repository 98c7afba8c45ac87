/**
 * Races against a ban: on two runners, a player writes, refreshes its session, connects and appeals while the
 * ban commits.
 *
 * @module-tag long
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { poolLayer } from "#sql/database"
import { TestDatabase } from "#testing/app"
import {
  at,
  authenticate,
  configure,
  goOnline,
  guest,
  type TestPlayer,
  type TestTarget
} from "#testing/players"
import { startCluster } from "#testing/runners"
import { ban, codeOf, lastSanction, play, refresh } from "../support/moderation-calls.ts"
import { sampleSize } from "../support/security/sizes.ts"
import { DatabaseLive } from "../support/service.ts"

const races = sampleSize(50, 4)
const writersPerNode = 1

/** Outcomes of the writes in one race. */
interface Journal {
  /** The operator has received the response to the ban. */
  banned: boolean
  acknowledged: number
  /** Successful writes that started after that response. */
  readonly late: Array<string>
}

/** Writes a save again and again until the service refuses it. */
const writeUntilRefused = (
  target: TestTarget,
  player: { readonly accessToken: string },
  journal: Journal,
  key: string
) =>
  Effect.gen(function* () {
    const afterBan = journal.banned
    const answer = yield* play(target, player, "PUT", `saves/${key}`, { data: afterBan })
    if (answer.status === 200) journal.acknowledged += 1
    if (answer.status === 200 && afterBan) journal.late.push(`${key} at ${target.url}`)
    return codeOf(answer)
  }).pipe(Effect.repeat({ until: (code) => code !== "ok" }))

const race = Effect.fnUntraced(function* (here: TestTarget, there: TestTarget) {
  const sql = yield* SqlClient.SqlClient
  const player = yield* guest(here)
  const online = yield* goOnline(there, player)
  const journal: Journal = { banned: false, acknowledged: 0, late: [] }
  const writers = yield* Effect.forEach(
    [here, there].flatMap((target) => Array.from({ length: writersPerNode }, () => target)),
    (target, index) => Effect.forkChild(writeUntilRefused(target, player, journal, `k${index}`))
  )
  const written = sql`select 1 from saves where player_id = ${player.id}`
  yield* Effect.repeat(written, { until: (rows) => rows.length > 0 })
  const [, refreshed, connecting] = yield* Effect.all(
    [
      Effect.tap(ban(here, player.id), () => Effect.sync(() => (journal.banned = true))),
      refresh(there, player.refreshToken),
      authenticate(there, player)
    ],
    { concurrency: "unbounded" }
  )
  const codes = yield* Effect.forEach(writers, Fiber.join)
  assert.deepStrictEqual(new Set(codes), new Set(["player_banned"]))
  assert.deepStrictEqual(journal.late, [])
  assert.include([4003, 4004], (yield* online.socket.closed).code)
  assert.strictEqual((yield* connecting.socket.closed).code, 4003)
  const token = String(at(refreshed.body, "refreshToken") ?? player.refreshToken)
  assert.strictEqual(codeOf(yield* refresh(here, token)), "player_banned")
  const [saved] = yield* sql`
    select sum(version)::int as written from saves where player_id = ${player.id}`
  assert.strictEqual(at(saved, "written"), journal.acknowledged)
  const [rows] = yield* sql`
    select (select count(*)::int from sanctions
        where player_id = ${player.id} and lifted_at is null) as bans,
      (select count(*)::int from audit
        where target_id = ${player.id} and action = 'player.ban') as entries`
  assert.deepStrictEqual(rows, { bans: 1, entries: 1 })
  yield* appealConcurrently(here, there, player)
})

/** Sends four concurrent appeals to both nodes; the service accepts one. */
const appealConcurrently = Effect.fnUntraced(function* (
  here: TestTarget,
  there: TestTarget,
  player: TestPlayer
) {
  const path = `players/me/sanctions/${yield* lastSanction(here, player)}/appeal`
  const answers = yield* Effect.forEach(
    [here, there, here, there],
    (target) => play(target, player, "POST", path, { message: "Please." }),
    { concurrency: "unbounded" }
  )
  const outcomes = answers.map((answer) => (answer.status === 201 ? "ok" : codeOf(answer)))
  assert.deepStrictEqual(outcomes.toSorted(), [
    "already_appealed",
    "already_appealed",
    "already_appealed",
    "ok"
  ])
})

describe("a ban on two nodes", { timeout: 600_000, tags: "sized" }, () => {
  it.live("allows a banned player no later write, session or socket, in any race", () =>
    Effect.gen(function* () {
      const { url } = yield* TestDatabase
      const { runners, target } = yield* startCluster({ databaseUrl: url, size: 2 })
      const [one, two] = runners.map((runner) => ({ ...target, url: runner.url }))
      if (one === undefined || two === undefined) return assert.fail("no cluster")
      yield* configure(one, { features: { saves: true, multiplayer: true } })
      yield* Effect.forEach(
        Array.from({ length: races }, (_, index) => index),
        (index) => Effect.scoped(index % 2 === 0 ? race(one, two) : race(two, one)),
        { concurrency: 4, discard: true }
      ).pipe(Effect.provide(poolLayer({ url: Redacted.make(url), connections: 2 })))
    }).pipe(Effect.provide(DatabaseLive), Effect.scoped)
  )
})
