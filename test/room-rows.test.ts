/** Rows of rooms behind a database that does not answer (design section 5). */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { toRow } from "#entities/room/snapshot"
import { poolLayer } from "#sql/database"
import { RoomRows } from "#sql/rooms"
import { pause } from "#src/testing/socket-client"
import { proxyTo } from "./http/raw.ts"
import { SharedDatabase } from "./http/stack.ts"
import { emptyRoom, start } from "./room-world.ts"

const row = toRow(emptyRoom(), 1, "nod_1", start)

layer(SharedDatabase.layer)("a snapshot", (it) => {
  it.effect("that gets no answer fails in time, and the next goes another way", () =>
    Effect.gen(function* () {
      const address = new URL(Redacted.value(yield* SharedDatabase))
      const proxy = yield* proxyTo(Number(address.port))
      address.port = `${proxy.port}`
      const pool = poolLayer({ url: Redacted.make(address.href), connections: 2 })
      const rows = Context.get(yield* Layer.build(Layer.provide(RoomRows.layer, pool)), RoomRows)
      yield* rows.save([row])
      yield* proxy.freeze
      const late = yield* Effect.forkChild(Effect.exit(rows.save([row])))
      yield* Effect.repeat(proxy.heldBack, { until: (held) => held })
      yield* TestClock.adjust("5 seconds")
      const failed = yield* Fiber.join(late)
      assert.isTrue(Exit.isFailure(failed) && !Exit.hasDies(failed))
      yield* proxy.thaw
      // A connection that was opened meanwhile is given up first.
      const saved = Effect.retry(rows.save([row]), { times: 2 })
      const passing = Effect.forever(Effect.andThen(pause(50), TestClock.adjust("100 millis")))
      assert.deepStrictEqual(yield* Effect.raceFirst(saved, passing), new Set([row.id]))
      yield* rows.remove([row])
    })
  )
})
