/**
 * Writes snapshots behind the rooms of one node: all rooms that changed within the last interval go
 * out in one statement (a few, when there are very many), at once when somebody waits for it. A room
 * whose row belongs to a newer activation is told so and falls silent. When the database is away the
 * newest state of each room waits, so the backlog is bounded by the number of rooms.
 */
import {
  Array,
  type Cause,
  Clock,
  Context,
  Effect,
  Latch,
  Layer,
  Schedule,
  Semaphore
} from "effect"
import { rooms } from "#rpc/limits"
import { isRefused } from "#sql/database"
import { RoomRows } from "#sql/rooms"
import { ThisNode } from "../local-actors.ts"
import { SnapshotCounts } from "../snapshot-counts.ts"
import type { RoomActor } from "./actor.ts"
import { toRow } from "./snapshot.ts"

/** Those that are there now, by the statement; with those that come meanwhile there might be no end. */
const byStatement = (actors: ReadonlySet<RoomActor>) =>
  Array.chunksOf(actors, rooms.snapshotsPerStatement)

/** Writes what is to be remembered of rooms; who must not write any more is told so. */
const makeSave = (rows: RoomRows["Service"], nodeId: string, counts: SnapshotCounts) =>
  Effect.fnUntraced(function* (actors: ReadonlyArray<RoomActor>) {
    const now = yield* Clock.currentTimeMillis
    const batch = actors.flatMap((actor) =>
      actor.state === undefined || actor.state.closed !== null || actor.fenced
        ? []
        : [{ actor, changes: actor.taken(), row: toRow(actor.state, actor.epoch, nodeId, now) }]
    )
    if (batch.length === 0) return
    const saved = yield* rows.save(batch.map(({ row }) => row))
    counts.wrote(saved.size)
    for (const { actor, changes } of batch) {
      const fenced = !saved.has(actor.id)
      if (fenced) counts.fenced += 1
      else actor.saved(changes)
      // Another activation has the row, or may have it from now on.
      if (fenced || actor.retired) actor.fence()
    }
  })

const warned = Effect.catchCause((cause: Cause.Cause<unknown>) =>
  Effect.logWarning("Room snapshots could not be written", cause)
)

/** What of a node's rooms is to be written, and how. */
const makeBacklog = (rows: RoomRows["Service"], nodeId: string, counts: SnapshotCounts) => {
  const dirty = new Set<RoomActor>()
  /** Those of them whose members wait for it. */
  const urgent = new Set<RoomActor>()
  /** Rooms that are over, and have a row yet. */
  const over = new Set<RoomActor>()
  const save = makeSave(rows, nodeId, counts)

  /** What fails stays dirty. */
  const attempt = (batch: ReadonlyArray<RoomActor>) =>
    Effect.suspend(() => {
      for (const actor of batch) for (const set of [dirty, urgent]) set.delete(actor)
      return Effect.tapError(save(batch), () =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          for (const actor of batch) dirty.add(actor)
          counts.failed(now)
        })
      )
    })

  /** One that the database refuses, for a code that is another's by now, keeps no other from it. */
  const saveBatch = (batch: ReadonlyArray<RoomActor>): ReturnType<typeof save> =>
    Effect.catchIf(attempt(batch), isRefused, (error) =>
      batch.length === 1
        ? Effect.logWarning("The snapshot of a room was refused", error)
        : Effect.forEach(Array.chunksOf(batch, Math.ceil(batch.length / 2)), saveBatch, {
            discard: true
          })
    )

  /** Saves rooms that are dirty. */
  const saveAll = (from: Set<RoomActor>) =>
    Effect.suspend(() => Effect.forEach(byStatement(from), saveBatch, { discard: true }))

  /** Removes the rows of rooms that are over; what fails is tried again. */
  const removeAll = Effect.gen(function* () {
    for (const batch of byStatement(over)) {
      yield* rows.remove(batch)
      for (const actor of batch) {
        over.delete(actor)
        actor.saved(actor.taken())
      }
    }
  }).pipe(warned)

  const flush = (from: Set<RoomActor>) => Effect.andThen(removeAll, saveAll(from))
  return { dirty, urgent, over, flush }
}

/** The write-behind of room snapshots. */
export class RoomWriter extends Context.Service<RoomWriter>()("entities/room/RoomWriter", {
  make: Effect.gen(function* () {
    const rows = yield* RoomRows
    const node = yield* ThisNode
    const counts = new SnapshotCounts()
    const backlog = makeBacklog(rows, node.id, counts)
    const { dirty, over, urgent } = backlog
    const wanted = yield* Latch.make(false)
    /** One write at a time: a snapshot that is still under way must not come after the removal. */
    const writing = (yield* Semaphore.make(1)).withPermits(1)
    const flush = (from: Set<RoomActor>) => writing(backlog.flush(from))

    yield* flush(dirty).pipe(
      warned,
      Effect.repeat(Schedule.spaced(rooms.snapshotMillis)),
      Effect.forkScoped
    )
    yield* wanted.await.pipe(
      Effect.andThen(wanted.close),
      Effect.andThen(flush(urgent)),
      // What failed is dirty, and has its turn with all that is.
      Effect.tapError(() => Effect.sleep(rooms.snapshotMillis)),
      warned,
      Effect.forever,
      Effect.forkScoped
    )

    return {
      counts,
      waiting: () => dirty.size,
      /** The room's state is worth a snapshot. */
      changed: (actor: RoomActor): void => {
        dirty.add(actor)
      },
      /** The room's members wait for its state to be written. */
      hurry: (actor: RoomActor): void => {
        urgent.add(actor)
        wanted.openUnsafe()
      },
      /** Writes everything now, before a room moves: true, or it waits for the database. */
      flush: flush(dirty).pipe(
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
      remove: (actor: RoomActor): void => {
        dirty.delete(actor)
        over.add(actor)
        wanted.openUnsafe()
      }
    }
  })
}) {
  static readonly layer = Layer.effect(RoomWriter, this.make)
}
