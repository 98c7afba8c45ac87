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

/** A room that is woken by the first call, which waits for `woken`. It fails calls for `failing` players. */
const makeRoom = Effect.gen(function* () {
  const woken = yield* Deferred.make<void, Unavailable>()
  const local = new Map<string, { readonly peek: (playerId: string) => HeldSeat | undefined }>()
  const calls: Array<string> = []
  const failing = new Set<string>()
  const peek = makePeekSeat(
    (_, playerId) =>
      Effect.suspend(() => {
        calls.push(playerId)
        const answer = failing.has(playerId) ? new Unavailable() : Effect.succeed(seatOf(playerId))
        return Effect.andThen(Deferred.await(woken), answer)
      }),
    local
  )
  const ask = (playerId: string) =>
    Effect.forkChild(peek(roomId, playerId), { startImmediately: true })
  return { ask, calls, failing, local, peek, woken }
})

describe("seats that rooms keep", () => {
  it.effect("reads the seat of a player without a call in a room on this node", () =>
    Effect.gen(function* () {
      const { calls, local, peek } = yield* makeRoom
      local.set(roomId, { peek: seatOf })
      assert.deepStrictEqual(yield* peek(roomId, "pl_1"), seatOf("pl_1"))
      assert.deepStrictEqual(calls, [])
    })
  )

  it.effect("reads the seats of all members who ask while a room wakes with one call", () =>
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

  it.effect("asks a room on another node for each seat with a call of its own", () =>
    Effect.gen(function* () {
      const { ask, calls, woken } = yield* makeRoom
      const fibers = [yield* ask("pl_1"), yield* ask("pl_2")]
      yield* Deferred.succeed(woken, undefined)
      assert.deepStrictEqual(yield* Fiber.joinAll(fibers), [seatOf("pl_1"), seatOf("pl_2")])
      assert.deepStrictEqual(calls, ["pl_1", "pl_2"])
    })
  )

  it.effect(
    "asks for a seat with a call when the activation on this node does not act for the room",
    () =>
      Effect.gen(function* () {
        const { calls, local, peek, woken } = yield* makeRoom
        local.set(roomId, { peek: () => undefined })
        yield* Deferred.succeed(woken, undefined)
        assert.deepStrictEqual(yield* peek(roomId, "pl_1"), seatOf("pl_1"))
        assert.deepStrictEqual(calls, ["pl_1"])
      })
  )

  it.effect("asks for the seat of the next member when the first one goes", () =>
    Effect.gen(function* () {
      const { ask, calls, woken } = yield* makeRoom
      const first = yield* ask("pl_1")
      const second = yield* ask("pl_2")
      assert.deepStrictEqual(calls, ["pl_1"])
      yield* Fiber.interrupt(first)
      yield* Deferred.succeed(woken, undefined)
      assert.deepStrictEqual(yield* Fiber.join(second), seatOf("pl_2"))
      assert.deepStrictEqual(calls, ["pl_1", "pl_2"])
    })
  )

  it.effect("asks for the seat of the next member when the call of the first one fails", () =>
    Effect.gen(function* () {
      const { ask, calls, failing, woken } = yield* makeRoom
      failing.add("pl_1")
      const first = yield* ask("pl_1")
      const second = yield* ask("pl_2")
      assert.deepStrictEqual(calls, ["pl_1"])
      yield* Deferred.succeed(woken, undefined)
      assert.instanceOf(yield* Effect.flip(Fiber.join(first)), Unavailable)
      assert.deepStrictEqual(yield* Fiber.join(second), seatOf("pl_2"))
      assert.deepStrictEqual(calls, ["pl_1", "pl_2"])
    })
  )

  it.effect("fails to read the seat of the next member when its own call fails, too", () =>
    Effect.gen(function* () {
      const { ask, calls, woken } = yield* makeRoom
      const first = yield* ask("pl_1")
      const second = yield* ask("pl_2")
      yield* Deferred.fail(woken, new Unavailable())
      assert.instanceOf(yield* Effect.flip(Fiber.join(first)), Unavailable)
      assert.instanceOf(yield* Effect.flip(Fiber.join(second)), Unavailable)
      assert.deepStrictEqual(calls, ["pl_1", "pl_2"])
    })
  )
})
