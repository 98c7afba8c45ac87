/**
 * Two runner processes: new rooms live where most of their players' sockets are.
 * @module-tag long
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { TestDatabase } from "#testing/app"
import { at, configure, newPlayer, type TestTarget } from "#testing/players"
import { type Runner, startCluster } from "#testing/runners"
import { readMetric } from "../support/metrics.ts"
import { DatabaseLive } from "../support/service.ts"

const roomCount = 6

/** Two players make a match, and two more fill its room. */
const config = {
  version: 1,
  features: { multiplayer: true },
  multiplayer: { modes: [{ key: "four", minPlayers: 2, maxPlayers: 4 }] }
}

/** Waits until the metric has this value on the runner. */
const untilMetric = (runner: Runner, name: string, wanted: (value: number) => boolean) =>
  readMetric(runner.url, name).pipe(
    Effect.filterOrFail(wanted, (value) => new Error(`${name} is ${value}`)),
    Effect.retry({ times: 400, schedule: Schedule.spaced("50 millis") })
  )

/** Two runners that own half of the shards each. */
const startTwo = Effect.gen(function* () {
  const database = yield* TestDatabase
  const { runners, target } = yield* startCluster({ databaseUrl: database.url, size: 2 })
  const [first, second] = runners
  if (first === undefined || second === undefined) return yield* Effect.die("No cluster")
  yield* configure(target, config)
  for (const runner of [first, second]) {
    yield* untilMetric(runner, "svc_cluster_shards", (shards) => shards > 100 && shards < 200)
  }
  return { first, second, target }
})

const playerOn = (target: TestTarget, runner: Runner) => newPlayer({ ...target, url: runner.url })

const roomsOn = (runner: Runner) => readMetric(runner.url, "svc_rooms")

describe("a new room", () => {
  it.live("places a new room on the runner of the player who creates it", () =>
    Effect.gen(function* () {
      const { first, second, target } = yield* startTwo
      for (const [runner, count] of [
        [first, roomCount],
        [second, roomCount / 2]
      ] as const) {
        for (let i = 0; i < count; i++) {
          const { socket } = yield* playerOn(target, runner)
          const created = yield* socket.request({ t: "create", mode: "four" })
          assert.strictEqual(created["ok"], true)
        }
      }
      assert.strictEqual(yield* roomsOn(first), roomCount)
      assert.strictEqual(yield* roomsOn(second), roomCount / 2)
    }).pipe(Effect.provide(DatabaseLive), Effect.scoped)
  )

  it.live("places the room of a match on the runner of most of its players", () =>
    Effect.gen(function* () {
      const { first, second, target } = yield* startTwo
      for (let i = 0; i < roomCount; i++) {
        const players = yield* Effect.all([playerOn(target, second), playerOn(target, second)])
        const matched = yield* Effect.all(
          players.map(({ socket }) => socket.request({ t: "quickMatch", mode: "four" })),
          { concurrency: 2 }
        )
        assert.strictEqual(at(matched[0], "data", "roomId"), at(matched[1], "data", "roomId"))
        // Fills the room, so that the next players get another.
        for (let seat = 0; seat < 2; seat++) {
          const { socket } = yield* playerOn(target, first)
          yield* socket.request({ t: "quickMatch", mode: "four" })
        }
      }
      assert.strictEqual(yield* roomsOn(second), roomCount)
      assert.strictEqual(yield* roomsOn(first), 0)
    }).pipe(Effect.provide(DatabaseLive), Effect.scoped)
  )
})
