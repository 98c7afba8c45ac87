/**
 * Writes snapshots behind the rooms of one node: all rooms that changed within the last interval go
 * out in one statement (a few, when there are very many). A room whose row belongs to a newer
 * activation is told so and falls silent. When the database is away the newest state of each room
 * waits, so the backlog is bounded by the number of rooms.
 */
import { Clock, Context, Effect, Layer, Schedule, Semaphore } from "effect"
import { rooms } from "#rpc/limits"
import { RoomRows } from "#sql/rooms"
import { ThisNode } from "../local-actors.ts"
import { SnapshotCounts } from "../snapshot-counts.ts"
import type { RoomActor } from "./actor.ts"
import { toRow } from "./snapshot.ts"

/** Takes a statement's worth of the dirty ones out. */
const takeDirty = (dirty: Set<RoomActor>): ReadonlyArray<RoomActor> => {
  const taken = Array.from(dirty).slice(0, rooms.snapshotsPerStatement)
  for (const actor of taken) dirty.delete(actor)
  return taken
}

/** Writes what is to be remembered of rooms; who must not write any more is told so. */
const makeSave = (rows: RoomRows["Service"], nodeId: string, counts: SnapshotCounts) =>
  Effect.fnUntraced(function* (actors: ReadonlyArray<RoomActor>) {
    const now = yield* Clock.currentTimeMillis
    const batch = actors.flatMap((actor) =>
      actor.state === undefined || actor.state.closed !== null || actor.fenced
        ? []
        : [toRow(actor.state, actor.epoch, nodeId, now)]
    )
    if (batch.length === 0) return
    const saved = yield* rows.save(batch)
    counts.wrote(saved.size)
    const wanted = new Set(batch.map((row) => row.id))
    for (const actor of actors) {
      if (!wanted.has(actor.id)) continue
      const fenced = !saved.has(actor.id)
      if (fenced) counts.fenced += 1
      // Another activation has the row, or may have it from now on.
      if (fenced || actor.retired) actor.fence()
    }
  })

/** The write-behind of room snapshots. */
export class RoomWriter extends Context.Service<RoomWriter>()("entities/room/RoomWriter", {
  make: Effect.gen(function* () {
    const rows = yield* RoomRows
    const node = yield* ThisNode
    const dirty = new Set<RoomActor>()
    const counts = new SnapshotCounts()
    /** One write at a time: a snapshot that is still under way must not come after the removal. */
    const writing = (yield* Semaphore.make(1)).withPermits(1)

    const save = makeSave(rows, node.id, counts)

    /** Saves all that is dirty; what fails stays dirty. */
    const flush = Effect.gen(function* () {
      while (dirty.size > 0) {
        const batch = takeDirty(dirty)
        yield* Effect.tapError(save(batch), () =>
          Effect.map(Clock.currentTimeMillis, (now) => {
            for (const actor of batch) dirty.add(actor)
            counts.failed(now)
          })
        )
      }
    }).pipe(writing)

    yield* flush.pipe(
      Effect.catchCause((cause) => Effect.logWarning("Room snapshots could not be written", cause)),
      Effect.repeat(Schedule.spaced(rooms.snapshotMillis)),
      Effect.forkScoped
    )

    return {
      counts,
      waiting: () => dirty.size,
      /** The room's state is worth a snapshot. */
      changed: (actor: RoomActor): void => {
        dirty.add(actor)
      },
      /** Writes everything now, before a room moves: true, or it waits for the database. */
      flush: flush.pipe(
        Effect.retry({ times: 3, schedule: Schedule.spaced(100) }),
        Effect.as(true),
        Effect.catchCause((cause) =>
          Effect.as(
            Effect.logWarning("The last snapshots of rooms could not be written yet", cause),
            false
          )
        )
      ),
      /** Forgets a room that is over. */
      remove: (actor: RoomActor) =>
        Effect.suspend(() => {
          dirty.delete(actor)
          return writing(rows.remove(actor.id, actor.epoch))
        }).pipe(
          Effect.retry({ times: 5, schedule: Schedule.exponential(200) }),
          Effect.catchCause((cause) => Effect.logError("A closed room was not removed", cause))
        )
    }
  })
}) {
  static readonly layer = Layer.effect(RoomWriter, this.make)
}
