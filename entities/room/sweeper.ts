/**
 * Wakes rooms whose time has come and that live nowhere: their runner died and nobody has asked for
 * them since. Awake, they end the graces that are over and close when empty. One per cluster.
 */
import { Clock, Effect, Schedule } from "effect"
import { Singleton } from "effect/cluster"
import { RoomRepository } from "#sql/rooms"
import { iso } from "./model.ts"
import { Room } from "./protocol.ts"

const sweepMillis = 5000
/** A living room acts on time; this late, nobody keeps it. */
const lateMillis = 10_000
const roomsPerSweep = 200
const concurrency = 16

const sweep = Effect.gen(function* () {
  const rows = yield* RoomRepository
  const client = yield* Room.client
  const now = yield* Clock.currentTimeMillis
  const late = yield* rows.overdue(iso(now - lateMillis), roomsPerSweep)
  yield* Effect.forEach(late, (id) => Effect.ignore(client(id).Wake()), {
    concurrency,
    discard: true
  })
})

export const RoomSweeper = Singleton.make(
  "RoomSweeper",
  sweep.pipe(
    Effect.catchCause((cause) => Effect.logWarning("Overdue rooms could not be swept", cause)),
    Effect.repeat(Schedule.spaced(sweepMillis))
  )
)
