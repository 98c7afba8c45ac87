/** How a node looks up the seats that rooms keep. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { Unavailable } from "#rpc/errors/codes"
import type { HeldSeat } from "#rpc/realtime"
import { makePeekSeat } from "#server/links/room-seats"

const roomId = "rm_1"

const seatOf = (playerId: string): HeldSeat => ({
  roomId,
  code: playerId,
  mode: "duel",
  graceUntil: "2026-11-23T00:00:00.000Z"
})

/** A room that is woken by the first call, which waits for `woken`. */
const makeRoom = Effect.gen(function* () {
  const woken = yield* Deferred.make<void, Unavailable>()
  const local = new Map<string, { readonly peek: (playerId: string) => HeldSeat | undefined }>()
  const calls: Array<string> = []
  const peek = makePeekSeat(
    (_, playerId) =>
      Effect.suspend(() => {
        calls.push(playerId)
        return Effect.as(Deferred.await(woken), seatOf(playerId))
      }),
    local
  )
  const ask = (playerId: string) =>
    Effect.forkChild(peek(roomId, playerId), { startImmediately: true })
  return { ask, calls, local, peek, woken }
})

describe("seats that rooms keep", () => {
  it.effect("are read without a call in a room on this node", () =>
    Effect.gen(function* () {
      const { calls, local, peek } = yield* makeRoom
      local.set(roomId, { peek: seatOf })
      assert.deepStrictEqual(yield* peek(roomId, "pl_1"), seatOf("pl_1"))
      assert.deepStrictEqual(calls, [])
    })
  )

  it.effect("cost one call for all members who ask while the room wakes", () =>
    Effect.gen(function* () {
      const { ask, calls, local, woken } = yield* makeRoom
      const fibers = [yield* ask("pl_1"), yield* ask("pl_2"), yield* ask("pl_3")]
      local.set(roomId, { peek: seatOf })
      yield* Deferred.succeed(woken, undefined)
      const seats = yield* Fiber.joinAll(fibers)
      assert.deepStrictEqual(seats, [seatOf("pl_1"), seatOf("pl_2"), seatOf("pl_3")])
      assert.deepStrictEqual(calls, ["pl_1"])
    })
  )

  it.effect("are asked for by a call each in a room on another node", () =>
    Effect.gen(function* () {
      const { ask, calls, woken } = yield* makeRoom
      const fibers = [yield* ask("pl_1"), yield* ask("pl_2")]
      yield* Deferred.succeed(woken, undefined)
      assert.deepStrictEqual(yield* Fiber.joinAll(fibers), [seatOf("pl_1"), seatOf("pl_2")])
      assert.deepStrictEqual(calls, ["pl_1", "pl_2"])
    })
  )

  it.effect("are asked for by a call when the activation here does not act for the room", () =>
    Effect.gen(function* () {
      const { calls, local, peek, woken } = yield* makeRoom
      local.set(roomId, { peek: () => undefined })
      yield* Deferred.succeed(woken, undefined)
      assert.deepStrictEqual(yield* peek(roomId, "pl_1"), seatOf("pl_1"))
      assert.deepStrictEqual(calls, ["pl_1"])
    })
  )

  it.effect("are asked for by the next member when the first one goes, or its call fails", () =>
    Effect.gen(function* () {
      const { ask, calls, woken } = yield* makeRoom
      const first = yield* ask("pl_1")
      const second = yield* ask("pl_2")
      yield* Fiber.interrupt(first)
      yield* Deferred.fail(woken, new Unavailable())
      const exit = yield* Fiber.await(second)
      assert.strictEqual(exit._tag, "Failure")
      assert.deepStrictEqual(calls, ["pl_1", "pl_2"])
    })
  )
})
