/**
 * Writes snapshots behind the rooms of one node: all rooms that changed within the last interval go
 * out in one statement (a few, when there are very many), at once when somebody waits for it. A room
 * whose row belongs to a newer activation is told so and falls silent. When the database is away the
 * newest state of each room waits, so the backlog is bounded by the number of rooms.
 *
 * A crash of Postgres empties the table. Whoever writes first after it learns so, and writes all rooms
 * that live here. A room that stops here stays with the writer until it lives elsewhere: until then
 * nobody else could write its row again.
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
import { violatedConstraint, isRefused } from "#sql/database"
import { RoomRepository } from "#sql/rooms"
import { ThisNode } from "../local-actors.ts"
import { SnapshotStats } from "../snapshot-counts.ts"
import type { RoomActor } from "./actor.ts"
import { toRow } from "./snapshot.ts"

/** Those that are there now, by the statement; with those that come meanwhile there might be no end. */
const byStatement = (actors: Iterable<RoomActor>) =>
  Array.chunksOf(actors, rooms.snapshotsPerStatement)

/**
 * Writes what is to be remembered of rooms; who must not write any more is told so. Answers the epoch at
 * which the table began, or 0.
 */
const makeSave = (rows: RoomRepository["Service"], nodeId: string, counts: SnapshotStats) =>
  Effect.fnUntraced(function* (actors: ReadonlyArray<RoomActor>, hasCode: boolean) {
    const now = yield* Clock.currentTimeMillis
    const batch = actors.flatMap((actor) => {
      const { epoch, id, since, state } = actor
      if (state === undefined || state.closed !== null || actor.fenced) return []
      const row = toRow(state, epoch, nodeId, now)
      const snapshot = { ...row, code: hasCode ? row.code : id, since }
      return [{ actor, changes: actor.beginWrite(), snapshot }]
    })
    if (batch.length === 0) return 0
    const saved = yield* rows.save(batch.map(({ snapshot }) => snapshot))
    counts.wrote(saved.size)
    for (const { actor, changes } of batch) {
      const begun = saved.get(actor.id)
      if (begun === undefined) {
        counts.fenced += 1
        actor.fence()
      } else {
        actor.since = Math.max(actor.since, begun)
        actor.commitWrite(changes)
      }
    }
    return Math.max(0, ...saved.values())
  })

const warned = Effect.catchCause((cause: Cause.Cause<unknown>) =>
  Effect.logWarning("Room snapshots could not be written", cause)
)

/** What of a node's rooms is to be written, and how. */
const makeBacklog = (rows: RoomRepository["Service"], nodeId: string, counts: SnapshotStats) => {
  const dirty = new Set<RoomActor>()
  /** Those of them whose members wait for it. */
  const urgent = new Set<RoomActor>()
  /** Rooms that are over, and have a row yet. */
  const over = new Set<RoomActor>()
  const living = new Set<RoomActor>()
  let newest = 0
  const write = makeSave(rows, nodeId, counts)

  /** A table that began anew lacks those that have not changed since. */
  const save = (batch: ReadonlyArray<RoomActor>, hasCode: boolean) =>
    Effect.map(write(batch, hasCode), (begun) => {
      if (begun > newest) for (const actor of living) dirty.add(actor)
      newest = Math.max(newest, begun)
    })

  /** What fails stays dirty. */
  const attempt = (batch: ReadonlyArray<RoomActor>, hasCode: boolean) =>
    Effect.suspend(() => {
      for (const actor of batch) for (const set of [dirty, urgent]) set.delete(actor)
      return Effect.tapError(save(batch, hasCode), () =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          for (const actor of batch) dirty.add(actor)
          counts.failed(now)
        })
      )
    })

  /**
   * One that the database refuses keeps no other from it. A room whose code is another's by now, since
   * a crash took its row away, is written without: nobody else comes in by it.
   */
  const saveBatch = (batch: ReadonlyArray<RoomActor>, hasCode = true): ReturnType<typeof save> =>
    Effect.catchIf(attempt(batch, hasCode), isRefused, (error) => {
      if (batch.length > 1) {
        const halves = Array.chunksOf(batch, Math.ceil(batch.length / 2))
        return Effect.forEach(halves, (half) => saveBatch(half), { discard: true })
      }
      if (hasCode && violatedConstraint(error) === "rooms_code") return saveBatch(batch, false)
      return Effect.logWarning("The snapshot of a room was refused", error)
    })

  /** Saves rooms that are dirty. */
  const saveAll = (from: Set<RoomActor>) =>
    Effect.suspend(() =>
      Effect.forEach(byStatement(from), (batch) => saveBatch(batch), { discard: true })
    )

  /** Removes the rows of rooms that are over; what fails is tried again. */
  const removeAll = Effect.gen(function* () {
    for (const batch of byStatement(over)) {
      yield* rows.remove(batch)
      for (const actor of batch) {
        over.delete(actor)
        actor.commitWrite(actor.beginWrite())
        // Should there be a row again, another activation finds it.
        actor.fence()
      }
    }
  }).pipe(warned)

  const flush = (from: Set<RoomActor>) => Effect.andThen(removeAll, saveAll(from))
  return { dirty, urgent, over, living, flush }
}

/** How often it is seen whether rooms that stopped here live elsewhere. */
const lookMillis = 500

/** Rooms that stopped here and live nowhere yet, by their ids. */
const makeLeft = (rows: RoomRepository["Service"], changed: (actor: RoomActor) => void) => {
  const left = new Map<string, RoomActor>()

  const forget = (actor: RoomActor): void => {
    actor.fence()
    if (left.get(actor.id) === actor) left.delete(actor.id)
  }

  /** A row that is missing is written again. */
  const look = Effect.gen(function* () {
    for (const actor of left.values()) if (actor.fenced) left.delete(actor.id)
    for (const batch of byStatement(left.values())) {
      const unclaimed = yield* rows.unclaimed(batch)
      for (const actor of batch) {
        const written = unclaimed.get(actor.id)
        if (written === undefined) forget(actor)
        else if (!written) changed(actor)
      }
    }
  })
  return { left, forget, look }
}

/** The write-behind of room snapshots. */
export class RoomWriter extends Context.Service<RoomWriter>()("entities/room/writer/RoomWriter", {
  make: Effect.gen(function* () {
    const rows = yield* RoomRepository
    const node = yield* ThisNode
    const counts = new SnapshotStats()
    const backlog = makeBacklog(rows, node.id, counts)
    const { dirty, living, over, urgent } = backlog
    const { forget, left, look } = makeLeft(rows, (actor) => dirty.add(actor))
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

    yield* look.pipe(warned, Effect.repeat(Schedule.spaced(lookMillis)), Effect.forkScoped)
    // Rooms that did not change since a crash have no row when they stop with their runner.
    yield* Effect.addFinalizer(() => warned(Effect.andThen(look, flush(dirty))))

    return {
      counts,
      waiting: () => dirty.size,
      /** The room's state is worth a snapshot. */
      changed: (actor: RoomActor): void => {
        dirty.add(actor)
      },
      /** The room's members wait for its state to be written. */
      flushSoon: (actor: RoomActor): void => {
        urgent.add(actor)
        wanted.openUnsafe()
      },
      /** Writes everything now; what fails waits for the database. */
      flush: flush(dirty).pipe(
        Effect.retry({ times: 3, schedule: Schedule.spaced(100) }),
        Effect.catchCause((cause) =>
          Effect.logWarning("The last snapshots of rooms could not be written yet", cause)
        )
      ),
      /** The room stops here: its last state is kept until another activation has it. */
      leave: (actor: RoomActor): void => {
        living.delete(actor)
        if (actor.state?.closed === null && !actor.fenced) left.set(actor.id, actor)
      },
      /** The room lives here; as long as it has no state, its last is kept. */
      enter: (actor: RoomActor): void => {
        living.add(actor)
        const last = left.get(actor.id)
        if (last !== undefined && actor.state !== undefined) forget(last)
      },
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
