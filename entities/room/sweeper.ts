/**
 * Activates rooms whose row is overdue: their runner died and nobody has used them since. Once active,
 * they end expired graces and close when empty. One sweeper per cluster.
 */
import { Clock, Effect, Layer, Schedule } from "effect"
import { Singleton } from "effect/cluster"
import { RoomRepository } from "#sql/rooms"
import { stayAwake } from "../stay-awake.ts"
import { makeSweep } from "../sweep.ts"
import { LocalRooms } from "./entity.ts"
import { iso } from "./model.ts"
import { Room } from "./protocol.ts"

const sweepMillis = 5000
/** Delay past its deadline after which no node has a room: an active room acts on time. */
const lateMillis = 5000

export const RoomSweeper = Singleton.make(
  "RoomSweeper",
  Effect.gen(function* () {
    const repository = yield* RoomRepository
    const client = yield* Room.client
    const sweep = makeSweep(
      (limit, skipped) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) =>
          repository.overdue(iso(now - lateMillis), limit, skipped)
        ),
      (id) => client(id).Wake()
    )
    yield* sweep.pipe(
      Effect.catchCause((cause) => Effect.logWarning("Failed to sweep overdue rooms", cause)),
      Effect.repeat(Schedule.spaced(sweepMillis))
    )
  })
)

/** Keeps the rooms of this node in memory whose members are all absent. */
export const WakefulRooms = Layer.effectDiscard(
  Effect.gen(function* () {
    const { actors } = yield* LocalRooms
    const client = yield* Room.client
    yield* stayAwake(
      actors,
      ({ state, watchers }) => state !== undefined && state.members.size > 0 && !watchers.isWatched,
      (id) => client(id).Wake()
    )
  })
)
