/**
 * Writer of the snapshots of one node's rooms, behind their changes. It writes all dirty rooms in
 * few statements once per interval, and sooner when replies wait for the write. It fences a room
 * whose row belongs to a newer activation.
 *
 * A crash of Postgres empties the table. The first write after it learns the new table epoch and
 * marks all rooms of this node dirty. The writer keeps a room that stopped here until another
 * activation owns it, because until then no other node could write its row again.
 */
import { Array, Clock, Context, Effect, Latch, Layer, Schedule } from "effect"
import { violatedConstraint, isRefused } from "#sql/database"
import { RoomRepository } from "#sql/rooms"
import { ThisNode } from "../local-actors.ts"
import { makeWriteBehind, snapshotMillis, type WriteBehind } from "../write-behind.ts"
import type { RoomActor } from "./actor.ts"
import { toRow } from "./snapshot.ts"

export const snapshotsPerStatement = 200

type Repository = RoomRepository["Service"]

const batchSize = snapshotsPerStatement

/**
 * Writes one batch and fences the rooms that belong to a newer activation. Returns the epoch at which
 * the table began, or 0.
 */
const makeSave = (
  repository: Repository,
  nodeId: string,
  { nextWriteNumber, stats }: Pick<WriteBehind, "nextWriteNumber" | "stats">
) =>
  Effect.fnUntraced(function* (actors: ReadonlyArray<RoomActor>, hasCode: boolean) {
    const now = yield* Clock.currentTimeMillis
    const writeNumber = nextWriteNumber()
    const batch = actors.flatMap((actor) => {
      const { activation, id, since, state } = actor
      const { epoch, executed, fenced } = activation
      if (state === undefined || state.closed !== null || fenced) return []
      const row = toRow(state, epoch, nodeId, now, executed.stored())
      const snapshot = { ...row, code: hasCode ? row.code : id, since, writeNumber }
      return [{ actor, changes: actor.beginWrite(), snapshot }]
    })
    if (batch.length === 0) return 0
    const saved = yield* repository.save(batch.map(({ snapshot }) => snapshot))
    stats.recordWritten(saved.size)
    for (const { actor, changes } of batch) {
      const tableEpoch = saved.get(actor.id)
      if (tableEpoch === undefined) {
        stats.recordFenced()
        actor.activation.fence()
      } else {
        actor.commitWrite(changes, tableEpoch)
      }
    }
    return Math.max(0, ...saved.values())
  })

/** Rooms of a node that need a write or a removal, with the methods for both. */
const makeBacklog = Effect.fnUntraced(function* (repository: Repository, nodeId: string) {
  const writeBehind = yield* makeWriteBehind<RoomActor>("rooms")
  const { attempt, dirty, inBatches, warn } = writeBehind
  /** Dirty rooms whose replies wait for the write. */
  const urgent = new Set<RoomActor>()
  /** Closed rooms that still have a row. */
  const closed = new Set<RoomActor>()
  const living = new Set<RoomActor>()
  let newestTableEpoch = 0
  const write = makeSave(repository, nodeId, writeBehind)

  /**
   * Writes a batch. A table that began again lacks the rows of rooms that have not changed since.
   */
  const save = (batch: ReadonlyArray<RoomActor>, hasCode: boolean) =>
    Effect.map(write(batch, hasCode), (tableEpoch) => {
      if (tableEpoch > newestTableEpoch) for (const actor of living) dirty.add(actor)
      newestTableEpoch = Math.max(newestTableEpoch, tableEpoch)
    })

  /**
   * Splits a refused batch, so that one refused room does not hold up the others. After a crash of
   * Postgres another room may have taken the room's code. The writer stores such a room without its
   * code.
   */
  const saveBatch = (batch: ReadonlyArray<RoomActor>, hasCode = true): ReturnType<typeof save> =>
    Effect.suspend(() => {
      for (const actor of batch) urgent.delete(actor)
      return attempt(batch, save(batch, hasCode))
    }).pipe(
      Effect.catchIf(isRefused, (error) => {
        if (batch.length > 1) {
          const halves = Array.chunksOf(batch, Math.ceil(batch.length / 2))
          return Effect.forEach(halves, (half) => saveBatch(half), { discard: true })
        }
        if (hasCode && violatedConstraint(error) === "rooms_code") return saveBatch(batch, false)
        return Effect.logWarning(
          "Failed to write the snapshot of a room: Postgres refused it",
          error
        )
      })
    )

  /** Removes the rows of closed rooms; retries failed removals with the next flush. */
  const removeClosed = inBatches(closed, batchSize, (batch) =>
    Effect.map(repository.remove(batch), () => {
      for (const actor of batch) {
        closed.delete(actor)
        actor.commitWrite(actor.beginWrite())
        // If another activation inserts the row again, this one must not answer for it.
        actor.activation.fence()
      }
    })
  ).pipe(warn)

  const flush = (from: ReadonlySet<RoomActor>) =>
    Effect.andThen(
      Effect.suspend(() => (closed.size === 0 ? Effect.void : removeClosed)),
      inBatches(from, batchSize, (batch) => saveBatch(batch))
    )
  return { ...writeBehind, urgent, closed, living, flush }
})

/** Interval of the check whether stopped rooms of this node live elsewhere. */
const unclaimedCheckMillis = 500

/** Rooms that stopped here and have no newer activation yet, by id. */
const makeUnclaimed = (
  repository: Repository,
  writeBehind: Effect.Success<ReturnType<typeof makeBacklog>>
) => {
  const unclaimed = new Map<string, RoomActor>()

  const forget = (actor: RoomActor): void => {
    actor.activation.fence()
    if (unclaimed.get(actor.id) === actor) unclaimed.delete(actor.id)
  }

  /** Drops rooms that another activation owns, and marks rooms dirty whose row is missing. */
  const check = Effect.gen(function* () {
    for (const actor of unclaimed.values()) if (actor.fenced) unclaimed.delete(actor.id)
    for (const batch of Array.chunksOf(unclaimed.values(), batchSize)) {
      const rows = yield* repository.unclaimed(batch)
      for (const actor of batch) {
        const written = rows.get(actor.id)
        if (written === undefined) forget(actor)
        else if (!written) writeBehind.markDirty(actor)
      }
    }
  })
  return { unclaimed, forget, check }
}

/** The write-behind of room snapshots. */
export class RoomWriter extends Context.Service<RoomWriter>()("entities/room/writer/RoomWriter", {
  make: Effect.gen(function* () {
    const repository = yield* RoomRepository
    const node = yield* ThisNode
    const backlog = yield* makeBacklog(repository, node.id)
    const { closed, dirty, flush, living, urgent, warn } = backlog
    const { check, forget, unclaimed } = makeUnclaimed(repository, backlog)
    const requested = yield* Latch.make(false)

    yield* backlog.flushPeriodically(flush(dirty))
    yield* requested.await.pipe(
      Effect.andThen(requested.close),
      Effect.andThen(flush(urgent)),
      // A failed room is dirty: the periodic flush retries it.
      Effect.tapError(() => Effect.sleep(snapshotMillis)),
      warn,
      Effect.forever,
      Effect.forkScoped
    )
    yield* warn(check).pipe(Effect.repeat(Schedule.spaced(unclaimedCheckMillis)), Effect.forkScoped)
    // Rooms unchanged since a crash of Postgres have no row when they stop with their runner.
    yield* Effect.addFinalizer(() => warn(Effect.andThen(check, flush(dirty))))

    return {
      counts: backlog.stats,
      /** Number of rooms whose newest state is not written. */
      waiting: () => dirty.size,
      /** Marks the room dirty after a change of its state. */
      markDirty: backlog.markDirty,
      /** Writes the room soon: replies wait for it. */
      flushSoon: (actor: RoomActor): void => {
        urgent.add(actor)
        requested.openUnsafe()
      },
      /** Writes all dirty rooms now; a failed write waits for the database. */
      flush: backlog.shared(
        flush(dirty).pipe(
          Effect.retry({ times: 3, schedule: Schedule.spaced(100) }),
          Effect.catchCause((cause) =>
            Effect.logWarning("Failed to write the last snapshots of rooms; retrying", cause)
          )
        )
      ),
      /** Keeps the last state of a room that stops here, until another activation has it. */
      deactivated: (actor: RoomActor): void => {
        living.delete(actor)
        if (actor.state?.closed === null && !actor.fenced) unclaimed.set(actor.id, actor)
      },
      /** Records that the room lives here. Without state, the writer still keeps the last one. */
      activated: (actor: RoomActor): void => {
        living.add(actor)
        const last = unclaimed.get(actor.id)
        if (last !== undefined && actor.state !== undefined) forget(last)
      },
      /** Removes the row of a closed room. */
      closed: (actor: RoomActor): void => {
        dirty.delete(actor)
        closed.add(actor)
        requested.openUnsafe()
      }
    }
  })
}) {
  static readonly layer = Layer.effect(RoomWriter, this.make)
}
