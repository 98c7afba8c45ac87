/**
 * Snapshots of the stored data of functions: databases, KV, files and durable objects. They let another
 * runner continue where one has stopped. A crash loses at most the seconds since the last snapshot.
 * A runner opens the data under an epoch. Once a newer epoch has opened it, an older one can no
 * longer write snapshots.
 */
import { Clock, Context, Data, Effect, Layer, Schedule } from "effect"
import { Unavailable } from "#rpc/errors/codes"
import { functionSnapshots } from "#rpc/functions/runtime-limits"
import type { EnvironmentId } from "#rpc/ids"
import { isEnvironmentGone } from "#sql/database"
import { SnapshotRepository } from "#sql/functions/snapshots"
import type { BlobNotFound, BlobStoreError } from "#server/platform/blobs/store"
import { makeTransaction } from "#server/platform/database"
import { FairSemaphore } from "#server/platform/fair-semaphore"
import { monotonicMillis } from "#entities/monotonic"
import { Settings } from "#server/platform/settings/settings"
import { FunctionHosts, type LocalFunctions } from "./host/local.ts"
import type { Writer } from "./storage/copy.ts"
import { makeObjects, type Objects } from "./storage/objects.ts"
import { type FoundData, makeOpen } from "./storage/data-opener.ts"
import { makeTake, type OpenData, type TakenSnapshot } from "./storage/snapshot-writer.ts"

/**
 * Error: a newer epoch has opened the data, or the environment no longer exists. This runner must stop
 * writing.
 */
export class SnapshotRefused extends Data.TaggedError("SnapshotRefused")<{
  readonly environmentId: EnvironmentId
}> {
  override readonly message = "A newer epoch has opened the data of these functions"
}

export class FunctionSnapshots extends Context.Service<
  FunctionSnapshots,
  {
    /**
     * Opens the data of an environment under an epoch, before its process starts. Restores the newest
     * snapshot, atomically, unless the data on this disk is the newest. From then on the service takes
     * snapshots after changes.
     */
    readonly restore: (
      environmentId: EnvironmentId,
      epoch: number
    ) => Effect.Effect<FoundData, SnapshotRefused | Unavailable>
    /**
     * Takes a snapshot of the data opened under this epoch. Its process may run. Returns undefined if
     * nothing has changed since the last one, or if this runner takes none.
     */
    readonly take: (
      environmentId: EnvironmentId,
      epoch: number
    ) => Effect.Effect<TakenSnapshot | undefined, SnapshotRefused | Unavailable>
    /** Stops snapshots of an environment that this runner hands over or has lost. */
    readonly close: (environmentId: EnvironmentId) => Effect.Effect<void>
    /** Removes all snapshots of an environment. */
    readonly remove: (environmentId: EnvironmentId) => Effect.Effect<void, Unavailable>
  }
>()("server/features/functions/snapshots/FunctionSnapshots") {
  static readonly layer = Layer.effect(
    FunctionSnapshots,
    Effect.gen(function* () {
      const { functions, hosting, runner } = yield* Settings
      const { local } = yield* FunctionHosts
      const objects = yield* makeObjects
      // One runner with a disk of its own needs none: the data on it is the newest.
      const isUseful = runner !== undefined || hosting.s3 !== undefined
      if (typeof local === "string" || functions.snapshotSeconds === 0 || !isUseful) {
        const remove = yield* makeRemove(objects)
        return FunctionSnapshots.of({
          restore: () => Effect.succeed("local"),
          take: () => Effect.undefined,
          close: () => Effect.void,
          remove: (environmentId) =>
            withoutRefusal(orUnavailable(environmentId, remove(environmentId)))
        })
      }
      return yield* makeSnapshots(local, objects, functions.snapshotSeconds * 1000)
    })
  )
}

/** Ignores the refusal of a removal: the environment is already gone. */
const withoutRefusal = (removal: Effect.Effect<void, Failure>) =>
  Effect.catchTag(removal, "SnapshotRefused", () => Effect.void)

type Failure = SnapshotRefused | Unavailable

/** Logs failures of the store; the caller may retry. */
const orUnavailable = <A>(
  environmentId: EnvironmentId,
  work: Effect.Effect<A, Failure | BlobNotFound | BlobStoreError>
): Effect.Effect<A, Failure> => {
  const unavailable = (error: BlobNotFound | BlobStoreError) =>
    Effect.logError("Failed to store or restore the data of functions", error).pipe(
      Effect.annotateLogs({ environmentId }),
      Effect.andThen(Effect.fail(new Unavailable()))
    )
  return Effect.catchTags(work, { BlobNotFound: unavailable, BlobStoreError: unavailable })
}

const makeRemove = Effect.fnUntraced(function* (objects: Objects) {
  const rows = yield* SnapshotRepository
  const transaction = yield* makeTransaction
  const removeSome = (environmentId: EnvironmentId) =>
    transaction(
      Effect.gen(function* () {
        const hashes = yield* rows.lockObjects(environmentId, functionSnapshots.removedAtOnce)
        yield* objects.remove(environmentId, hashes)
        yield* rows.deleteObjects(environmentId, hashes)
        return hashes.length
      })
    )
  return Effect.fn("FunctionSnapshots.remove")(function* (environmentId: EnvironmentId) {
    yield* transaction(Effect.andThen(rows.lock(environmentId), rows.deleteAll(environmentId)))
    yield* Effect.repeat(removeSome(environmentId), {
      until: (removed) => removed < functionSnapshots.removedAtOnce
    })
  })
})

/** Open data on this runner, and the due time of its next snapshot. */
interface Watched extends OpenData {
  dueAt: number
}

/** Runs work on the data of an environment, one at a time. */
const makeInTurn = () => {
  const permits = new FairSemaphore({
    ...functionSnapshots.work,
    refuse: Effect.fail(new Unavailable())
  })
  return <A>(
    environmentId: EnvironmentId,
    work: Effect.Effect<A, Failure | BlobNotFound | BlobStoreError>
  ): Effect.Effect<A, Failure> =>
    Effect.catchDefect(
      permits.withPermit(environmentId)(orUnavailable(environmentId, work)),
      (defect) =>
        isEnvironmentGone(defect)
          ? Effect.fail(new SnapshotRefused({ environmentId }))
          : Effect.die(defect)
    )
}

const makeTakeOpen = Effect.fnUntraced(function* (
  { context: { directories }, hosts }: LocalFunctions,
  objects: Objects,
  everyMillis: number
) {
  const now = monotonicMillis(yield* Clock.Clock)
  const takeData = yield* makeTake(directories, objects)
  const writerOf = (environmentId: EnvironmentId): Writer => {
    return () => {
      const supervisor = hosts.known(environmentId)?.supervisor
      if (supervisor === undefined) return undefined
      return supervisor.isQuiet ? supervisor.process?.pid : "starting"
    }
  }
  return (watched: Watched) =>
    Effect.suspend(() => {
      const startedAt = now()
      return Effect.ensuring(
        takeData(watched, writerOf(watched.environmentId)),
        Effect.sync(() => {
          const rest = (now() - startedAt) * functionSnapshots.restFactor
          watched.dueAt = now() + Math.max(everyMillis, rest)
        })
      )
    })
})

const makeSnapshots = Effect.fnUntraced(function* (
  local: LocalFunctions,
  objects: Objects,
  everyMillis: number
) {
  const now = monotonicMillis(yield* Clock.Clock)
  const openData = yield* makeOpen(local.context.directories, objects)
  const takeOpen = yield* makeTakeOpen(local, objects, everyMillis)
  const removeData = yield* makeRemove(objects)
  const open = new Map<EnvironmentId, Watched>()
  const inTurn = makeInTurn()
  const refuse = (environmentId: EnvironmentId) => new SnapshotRefused({ environmentId })

  const restore = Effect.fnUntraced(function* (environmentId: EnvironmentId, epoch: number) {
    const opening = yield* openData(environmentId, epoch)
    if (opening === "refused") return yield* refuse(environmentId)
    const { base, found } = opening
    open.set(environmentId, { environmentId, epoch, base, dueAt: now() + everyMillis })
    return found
  })
  const take = Effect.fnUntraced(function* (environmentId: EnvironmentId, epoch: number) {
    const watched = open.get(environmentId)
    if (watched?.epoch !== epoch) return yield* refuse(environmentId)
    const taken = yield* takeOpen(watched)
    if (taken === "outdated") return yield* new Unavailable()
    if (taken !== "refused") return taken
    open.delete(environmentId)
    return yield* refuse(environmentId)
  })
  const remove = Effect.fnUntraced(function* (environmentId: EnvironmentId) {
    yield* removeData(environmentId)
    const watched = open.get(environmentId)
    if (watched !== undefined) watched.base = undefined
  })
  const takeDue = Effect.suspend(() =>
    Effect.forEach(
      [...open.values()].filter(({ dueAt }) => dueAt <= now()),
      ({ environmentId, epoch }) =>
        Effect.catchCause(inTurn(environmentId, take(environmentId, epoch)), (cause) =>
          Effect.annotateLogs(Effect.logWarning("Failed to take a snapshot of functions", cause), {
            environmentId
          })
        ),
      { concurrency: functionSnapshots.takenAtOnce, discard: true }
    )
  )
  yield* Effect.forkScoped(
    Effect.repeat(takeDue, Schedule.spaced(functionSnapshots.dueCheckMillis))
  )
  return FunctionSnapshots.of({
    restore: (environmentId, epoch) => inTurn(environmentId, restore(environmentId, epoch)),
    take: (environmentId, epoch) => inTurn(environmentId, take(environmentId, epoch)),
    close: (environmentId) => Effect.sync(() => void open.delete(environmentId)),
    remove: (environmentId) => withoutRefusal(inTurn(environmentId, remove(environmentId)))
  })
})
