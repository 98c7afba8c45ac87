/**
 * Two runner processes on one Postgres. A room lives on one of them and has players on both; it survives
 * a kill, a graceful stop and a freeze of its runner.
 */
import { assert, describe, it, layer } from "@effect/vitest"
import { PgClient } from "@effect/sql-pg"
import { Effect, Redacted, Schedule } from "effect"
import { Reactivity } from "effect/reactivity"
import { TestDatabase } from "#testing/app"
import {
  at,
  authenticate,
  guest,
  newPlayer,
  type OnlinePlayer,
  type TestTarget
} from "#testing/players"
import { type Runner, startCluster } from "#testing/runners"
import { connectSocket } from "#testing/socket-client"
import { certified } from "../support/certificate.ts"
import { tlsFiles } from "../support/runner-ports.ts"
import { live } from "../support/security/security-harness.ts"
import { DatabaseLive } from "../support/service.ts"
import { TwoRunners } from "../support/two-runners.ts"

/** Polls a room's row until `read` returns a value. */
const rowOf = <A>(
  url: string,
  roomId: unknown,
  read: (row: { readonly node: string; readonly snapshot: string }) => A | undefined
) =>
  Effect.gen(function* () {
    const sql = yield* PgClient.make({ url: Redacted.make(url) })
    const rows = yield* sql<{ node: string; snapshot: string }>`
      select node, snapshot from rooms where id = ${String(roomId)}`
    const [row] = rows
    const found = row === undefined ? undefined : read(row)
    return found ?? (yield* Effect.fail("The room's row does not match yet"))
  }).pipe(
    Effect.scoped,
    Effect.retry({ times: 100, schedule: Schedule.spaced(50) }),
    Effect.provide(Reactivity.layer),
    Effect.orDie
  )

const targetOf = (target: TestTarget, runner: Runner): TestTarget => ({
  ...target,
  url: runner.url
})

/** Two players of one room on two runners: `near` is on the room's owner, `far` on the other. */
const twoPlayersOn = Effect.fnUntraced(function* (cluster: {
  readonly databaseUrl: string
  readonly runners: ReadonlyArray<Runner>
  readonly target: TestTarget
}) {
  const { databaseUrl, runners, target } = cluster
  const [first, second] = runners
  if (first === undefined || second === undefined) return yield* Effect.die("No cluster")
  const ada = yield* newPlayer(targetOf(target, first), "Ada")
  const bob = yield* newPlayer(targetOf(target, second), "Bob")
  const [one, two] = yield* Effect.all(
    [
      ada.socket.request({ t: "quickMatch", mode: "default" }),
      bob.socket.request({ t: "quickMatch", mode: "default" })
    ],
    { concurrency: 2 }
  )
  assert.strictEqual(at(one, "data", "roomId"), at(two, "data", "roomId"))
  const roomId = at(one, "data", "roomId")
  yield* ada.socket.request({ t: "setState", patch: { score: 7 } })
  const owner = yield* rowOf(databaseUrl, roomId, (row) =>
    row.snapshot.includes('"score":7')
      ? runners.find((runner) => runner.node === row.node)
      : undefined
  )
  const far = owner === first ? bob : ada
  const near = owner === first ? ada : bob
  return { roomId, owner, near, far, target, runners }
})

/** On runners of their own. */
const twoPlayersWith = Effect.fnUntraced(function* (env: Readonly<Record<string, string>>) {
  const { url: databaseUrl } = yield* TestDatabase
  const cluster = yield* startCluster({ databaseUrl, size: 2, env })
  return yield* twoPlayersOn({ databaseUrl, ...cluster })
})

const twoPlayers = twoPlayersWith({})

/** On the runners that tests share. */
const twoPlayersShared = Effect.gen(function* () {
  const { at1: target, databaseUrl, first, second } = yield* TwoRunners
  return yield* twoPlayersOn({ databaseUrl, target, runners: [first, second] })
})

const assertDelivered = (from: OnlinePlayer, to: OnlinePlayer, type: string) =>
  Effect.gen(function* () {
    yield* from.socket.send({ t: "send", type, data: { n: 1 } })
    const message = yield* to.socket.next("message", (frame) => frame["type"] === type)
    assert.strictEqual(message["from"], from.id)
  })

/** The same while the room may be moving: messages may be lost meanwhile, so the sender repeats. */
const retryUntilDelivered = (from: OnlinePlayer, to: OnlinePlayer, type: string) =>
  Effect.raceFirst(
    to.socket.next("message", (frame) => frame["type"] === type),
    Effect.forever(Effect.delay(from.socket.send({ t: "send", type }), "100 millis"))
  )

layer(TwoRunners.layerWith(), live)("two runners", (it) => {
  it.effect("shares a room between the players of two runners", () =>
    Effect.gen(function* () {
      const { far, near } = yield* twoPlayersShared
      yield* assertDelivered(near, far, "there")
      yield* assertDelivered(far, near, "back")
      yield* far.socket.request({ t: "setState", patch: { turn: far.id } })
      yield* near.socket.next("state", (frame) => at(frame, "patch", "turn") === far.id)
      yield* far.socket.request({ t: "leave" })
      const left = yield* near.socket.next("player_left")
      assert.strictEqual(left["playerId"], far.id)
      // The next test plays in another room.
      yield* near.socket.request({ t: "leave" })
    })
  )

  it.effect("recovers a room on the other runner when its owner is killed", () =>
    Effect.gen(function* () {
      const { far, near, owner, roomId, runners, target } = yield* twoPlayersShared
      yield* owner.kill
      const recovered = yield* far.socket.next("room_joined", (frame) => frame["resumed"] === true)
      assert.strictEqual(at(recovered, "room", "id"), roomId)
      assert.deepStrictEqual(at(recovered, "room", "state"), { score: 7 })
      const survivor = runners.find((runner) => runner !== owner)
      if (survivor === undefined) return yield* Effect.die("No survivor")
      const back = yield* authenticate(targetOf(target, survivor), near)
      const welcome = yield* back.socket.next("welcome")
      assert.strictEqual(at(welcome, "rooms", 0, "roomId"), roomId)
      const resumed = yield* back.socket.request({ t: "resume", roomId })
      assert.strictEqual(at(resumed, "ok"), true)
      yield* assertDelivered(back, far, "again")
      yield* assertDelivered(far, back, "and again")
      const joins = far.socket.received.filter((frame) => frame.t === "player_joined")
      assert.isAtMost(joins.length, 1)
    })
  )
})

describe("two runners of their own", () => {
  it.live(
    "shares a room over mutual TLS",
    () =>
      Effect.gen(function* () {
        const { far, near, runners } = yield* twoPlayersWith(yield* tlsFiles(certified))
        yield* assertDelivered(near, far, "there")
        yield* assertDelivered(far, near, "back")
        for (const runner of runners) assert.notMatch(runner.output(), /handshake failed/)
      }).pipe(Effect.provide(DatabaseLive), Effect.scoped),
    { tags: "long" }
  )

  it.live(
    "hands a room over without loss when its owner stops gracefully",
    () =>
      Effect.gen(function* () {
        const { far, near, owner } = yield* twoPlayers
        yield* near.socket.request({ t: "setState", patch: { last: "word" } })
        yield* Effect.forkChild(owner.stop)
        const recovered = yield* far.socket.next(
          "room_joined",
          (frame) => frame["resumed"] === true
        )
        assert.strictEqual(at(recovered, "room", "state", "last"), "word")
        const closed = yield* near.socket.closed
        assert.strictEqual(closed.code, 1012)
        const still = yield* far.socket.request({ t: "setState", patch: { next: 1 } })
        assert.strictEqual(at(still, "ok"), true)
      }).pipe(Effect.provide(DatabaseLive), Effect.scoped),
    { tags: "long" }
  )

  it.live(
    "denies a frozen runner its rooms when it wakes up, and admits who spoke meanwhile",
    () =>
      Effect.gen(function* () {
        const { far, near, owner, roomId, target } = yield* twoPlayers
        const dora = yield* guest(targetOf(target, owner))
        const hers = yield* connectSocket(`${owner.socketUrl}/v1/realtime`)
        yield* owner.signal("SIGSTOP")
        const recovered = yield* far.socket.next(
          "room_joined",
          (frame) => frame["resumed"] === true
        )
        assert.strictEqual(at(recovered, "room", "id"), roomId)
        yield* far.socket.request({ t: "setState", patch: { score: 8 } })
        yield* far.socket.next("player_disconnected")
        // A first frame is due after five seconds, less than the room took to recover.
        yield* hers.send({ t: "auth", key: target.publishableKey, token: dora.accessToken })
        // The frozen runner reads this frame first when it wakes up.
        yield* near.socket.send({ t: "setState", rid: "late", patch: { late: true } })
        yield* owner.signal("SIGCONT")
        yield* hers.next("welcome")
        const rejoined = yield* near.socket.next(
          "room_joined",
          (frame) => frame["resumed"] === true
        )
        assert.strictEqual(at(rejoined, "room", "state", "score"), 8)
        const late = yield* near.socket.next("reply", (frame) => frame["rid"] === "late")
        assert.strictEqual(at(late, "ok"), true)
        yield* retryUntilDelivered(near, far, "again")
        yield* retryUntilDelivered(far, near, "and again")
        // A new player sees the writes of both: there is one room.
        const cleo = yield* newPlayer(target, "Cleo")
        yield* cleo.socket.request({ t: "join", roomId })
        const joined = yield* cleo.socket.next("room_joined")
        assert.deepStrictEqual(at(joined, "room", "state"), { score: 8, late: true })
      }).pipe(Effect.provide(DatabaseLive), Effect.scoped),
    { tags: "long" }
  )
})
