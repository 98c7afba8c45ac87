/**
 * Environments whose functions this runner runs, and locations of the others. Each environment runs on
 * one runner at a time, under a lease in Postgres whose epoch grows with each holder. The first runner
 * that gets a call takes a free lease. It releases the lease when the environment is idle or the runner
 * stops. Calls in progress end first, and new ones wait for the next holder.
 */
import { Cause, Clock, Deferred, Effect, Exit, Option, Schedule, Schema } from "effect"
import { Unavailable } from "#rpc/errors/codes"
import { functionLeases, functionRuntime } from "#rpc/functions/runtime-limits"
import { EnvironmentId } from "#rpc/ids"
import { FunctionHostRepository } from "#sql/functions/hosts"
import { ThisNode } from "#entities/local-actors"
import { monotonicMillis } from "#entities/monotonic"
import type { FunctionHost } from "../host/host.ts"
import type { LocalFunctions } from "../host/local.ts"
import { endRecorded } from "../host/recorded-process.ts"
import { FunctionSnapshots } from "../snapshots.ts"
import { openedBy } from "../storage/marker.ts"
import { RunnerLease, type Times } from "./lease.ts"

const isEnvironmentId = Schema.is(EnvironmentId)

export interface LocalHost {
  readonly kind: "local"
  /** Returns the host; throws while this runner stops. */
  readonly host: () => FunctionHost
}

export interface RemoteHost {
  readonly kind: "remote"
  /** Address of the runner, as in the runner list. */
  readonly address: string
  /** Callbacks for the moment when that runner has certainly lost the environment. */
  readonly watchers: Set<() => void>
}

export type Placement = LocalHost | RemoteHost

/** State that this runner knows of an environment. */
class Entry {
  /** Place of the environment; undefined during a look-up, takeover or handover. */
  placement: Placement | undefined
  lease: RunnerLease | undefined
  readonly changed = Deferred.makeUnsafe<void>()
  readonly since: number
  /** Last place of the environment on another runner. */
  readonly before: RemoteHost | undefined
  waiting = 0

  constructor(since: number, replaced: Entry | undefined) {
    this.since = since
    this.before = replaced?.placement?.kind === "remote" ? replaced.placement : replaced?.before
  }

  /** Notifies calls that wait for the previous runner that it has lost the environment. */
  dismiss(): void {
    for (const leave of this.before?.watchers ?? []) leave()
  }
}

const makeEntries = Effect.gen(function* () {
  const clock = yield* Clock.Clock
  const now = monotonicMillis(clock)
  const times = (): Times => [now(), clock.currentTimeMillisUnsafe()]
  const entries = new Map<EnvironmentId, Entry>()
  return {
    entries,
    now,
    times,
    /** Replaces the entry of an environment by a new one. */
    replace: (environmentId: EnvironmentId): Entry => {
      const entry = new Entry(now(), entries.get(environmentId))
      entries.set(environmentId, entry)
      return entry
    },
    /** Wakes the calls that wait for the entry, which then look again. */
    wake: (entry: Entry) => Deferred.succeed(entry.changed, undefined),
    /** Removes the entry, unless a newer one has replaced it. */
    forget: (environmentId: EnvironmentId, entry: Entry) =>
      Effect.suspend(() => {
        if (entries.get(environmentId) === entry) entries.delete(environmentId)
        entry.dismiss()
        return Deferred.succeed(entry.changed, undefined)
      })
  }
})
type Entries = Effect.Success<typeof makeEntries>

/** Finds the holder of an environment, or takes the lease and prepares its data. */
const makeFind = Effect.fnUntraced(function* (
  { forget, wake, times }: Entries,
  { context: { directories }, hosts }: LocalFunctions,
  address: string
) {
  const repository = yield* FunctionHostRepository
  const snapshots = yield* FunctionSnapshots
  const { id: node } = yield* ThisNode
  const takeOver = Effect.fnUntraced(function* (environmentId: EnvironmentId, entry: Entry) {
    const startedAt = times()
    const holder = yield* repository.acquire({ environmentId, node, address })
    if (holder === undefined) return
    if (holder.node !== node) {
      const isSame = entry.before?.address === holder.address
      const watchers = isSame ? entry.before?.watchers : undefined
      if (!isSame) entry.dismiss()
      entry.placement = { kind: "remote", address: holder.address, watchers: watchers ?? new Set() }
      return
    }
    entry.dismiss()
    const lease = new RunnerLease(holder.epoch, startedAt)
    entry.lease = lease
    yield* Effect.promise(() => endRecorded(directories.snapshotsOf(environmentId))).pipe(
      Effect.andThen(snapshots.restore(environmentId, holder.epoch)),
      Effect.onError(() =>
        Effect.ignoreCause(repository.release({ environmentId, node, epoch: holder.epoch }))
      )
    )
    if (entry.lease !== lease || lease.isOver(times())) return
    entry.placement = { kind: "local", host: () => hosts.of(environmentId) }
  })
  return Effect.fnUntraced(function* (environmentId: EnvironmentId, entry: Entry) {
    const exit = yield* Effect.exit(takeOver(environmentId, entry))
    if (Exit.isSuccess(exit) && entry.placement !== undefined) return yield* wake(entry)
    entry.lease = undefined
    if (Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause)) {
      yield* Effect.logWarning("Failed to take over functions", exit.cause).pipe(
        Effect.annotateLogs({ environmentId })
      )
      yield* Effect.sleep(functionLeases.failureMillis)
    }
    yield* Effect.sleep(functionLeases.retryMillis)
    yield* forget(environmentId, entry)
  })
})

/** Releases an environment: after a last snapshot of its data, or at once if the lease may be over. */
const makeLeave = Effect.fnUntraced(function* (
  { entries, forget, replace, wake }: Entries,
  { hosts }: LocalFunctions
) {
  const repository = yield* FunctionHostRepository
  const snapshots = yield* FunctionSnapshots
  const { id: node } = yield* ThisNode
  /** Ends the process and stores the data; returns false on failure. */
  const store = (environmentId: EnvironmentId, entry: Entry, epoch: number) =>
    Effect.promise(() => hosts.close(environmentId, functionLeases.handOverMillis)).pipe(
      Effect.andThen(
        Effect.retry(snapshots.take(environmentId, epoch), {
          times: functionLeases.snapshotRetries,
          schedule: Schedule.spaced(functionLeases.failureMillis),
          while: () => entry.lease !== undefined
        })
      ),
      Effect.as(true),
      Effect.catchCause((cause) =>
        Effect.logWarning("Failed to store the data of functions that move", cause).pipe(
          Effect.annotateLogs({ environmentId }),
          Effect.as(false)
        )
      )
    )
  return {
    /**
     * Lets calls in progress end, stores the data, and releases the lease. A runner that keeps running
     * keeps the lease on data that it failed to store.
     */
    leave: Effect.fnUntraced(function* (environmentId: EnvironmentId, isStopping: boolean) {
      const { lease, placement } = entries.get(environmentId) ?? {}
      if (placement?.kind !== "local" || lease === undefined) return
      const entry = replace(environmentId)
      entry.lease = lease
      const isStored = yield* store(environmentId, entry, lease.epoch)
      if (!isStored && !isStopping && entry.lease === lease) {
        entry.placement = placement
        return yield* wake(entry)
      }
      yield* snapshots.close(environmentId)
      yield* Effect.ignoreCause(repository.release({ environmentId, node, epoch: lease.epoch }))
      yield* forget(environmentId, entry)
    }),
    /** Ends the process at once. Data without a snapshot stays on this machine only. */
    fence: Effect.fnUntraced(function* (environmentId: EnvironmentId, before: Entry) {
      if (entries.get(environmentId) !== before) return
      before.lease = undefined
      if (before.placement === undefined) {
        // It is about to start, or to end.
        hosts.known(environmentId)?.supervisor.process?.kill()
        return
      }
      const entry = replace(environmentId)
      yield* Effect.logWarning(
        "Failed to renew the lease on functions; stopping them on this runner"
      ).pipe(Effect.annotateLogs({ environmentId }))
      yield* snapshots.close(environmentId)
      yield* Effect.promise(() => hosts.close(environmentId, 0)).pipe(
        Effect.ensuring(forget(environmentId, entry))
      )
    })
  }
})
type Leaving = Effect.Success<ReturnType<typeof makeLeave>>

/** Renews the leases of this runner, and fences environments that lost theirs. */
const keepLeases = Effect.fnUntraced(function* (
  { entries, now, times }: Entries,
  { hosts }: LocalFunctions,
  { fence, leave }: Leaving
) {
  const repository = yield* FunctionHostRepository
  const { id: node } = yield* ThisNode
  const scope = yield* Effect.scope
  const held = () => [...entries].filter(([, { lease }]) => lease !== undefined)
  const renew = Effect.gen(function* () {
    const startedAt = times()
    const before = held()
    if (before.length === 0) return
    const rows = yield* Effect.timeout(repository.renew(node), functionLeases.renewTimeoutMillis)
    const epochs = new Map(rows.map(({ environmentId, epoch }) => [environmentId, epoch]))
    for (const [environmentId, entry] of before) {
      if (entry.lease?.epoch === epochs.get(environmentId)) entry.lease?.renewed(startedAt)
      else yield* Effect.forkIn(fence(environmentId, entry), scope)
    }
  }).pipe(
    Effect.catchCause((cause) => Effect.logInfo("Failed to renew leases on functions", cause))
  )
  const check = Effect.gen(function* () {
    for (const [environmentId, entry] of held()) {
      if (entry.lease?.isOver(times())) yield* Effect.forkIn(fence(environmentId, entry), scope)
    }
  })
  /** Removes locations of other runners, and releases environments that get no calls. */
  const tidy = Effect.gen(function* () {
    for (const [environmentId, { placement, since }] of entries) {
      const age = now() - since
      const isOld = placement?.kind === "remote" && placement.watchers.size === 0
      if (isOld && age > functionLeases.foundMillis) entries.delete(environmentId)
      const isUnused = placement?.kind === "local" && hosts.known(environmentId) === undefined
      if (isUnused && age > functionRuntime.idleMillis) {
        yield* Effect.forkIn(leave(environmentId, false), scope)
      }
    }
  })
  yield* Effect.forkScoped(Effect.repeat(renew, Schedule.spaced(functionLeases.renewMillis)))
  yield* Effect.forkScoped(Effect.repeat(check, Schedule.spaced(functionLeases.fenceCheckMillis)))
  yield* Effect.forkScoped(Effect.repeat(tidy, Schedule.spaced(functionLeases.foundMillis)))
})

/**
 * Finds the other runner that has an environment. Also releases calls that wait for an unresponsive
 * runner which has lost the environment.
 */
const makeElsewhere = Effect.fnUntraced(function* ({ entries }: Entries) {
  const repository = yield* FunctionHostRepository
  const { id: node } = yield* ThisNode
  const elsewhere = Effect.fnUntraced(function* (environmentId: EnvironmentId) {
    const holder = Option.getOrUndefined(yield* repository.find(environmentId))
    return holder === undefined || holder.node === node ? undefined : holder.address
  })
  const look = Effect.suspend(() =>
    Effect.forEach([...entries], ([environmentId, { placement }]) => {
      if (placement?.kind !== "remote" || placement.watchers.size === 0) return Effect.void
      return Effect.map(elsewhere(environmentId), (address) => {
        if (address !== placement.address) for (const leave of placement.watchers) leave()
      })
    })
  ).pipe(
    Effect.catchCause((cause) =>
      Effect.logDebug("Failed to read which runner holds the functions", cause)
    )
  )
  yield* Effect.forkScoped(Effect.repeat(look, Schedule.spaced(functionLeases.renewMillis)))
  return elsewhere
})

/** Leases of the runner at this address, for as long as the scope is open. */
export const makeLeases = Effect.fnUntraced(function* (local: LocalFunctions, address: string) {
  const known = yield* makeEntries
  const { entries, now, replace, times } = known
  const scope = yield* Effect.scope
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const find = yield* makeFind(known, local, address)
  const leaving = yield* makeLeave(known, local)
  const state = { isStopping: false }
  yield* keepLeases(known, local, leaving)
  yield* Effect.addFinalizer(() => {
    state.isStopping = true
    return Effect.forEach([...entries.keys()], (id) => leaving.leave(id, true), {
      concurrency: "unbounded",
      discard: true
    })
  })
  local.hosts.idle.register((environmentId) => {
    runFork(leaving.leave(EnvironmentId.make(environmentId), false))
  })

  const open = (environmentId: EnvironmentId, delayMillis: number) => {
    const entry = replace(environmentId)
    const found = Effect.delay(find(environmentId, entry), delayMillis)
    return Effect.as(Effect.forkIn(found, scope), entry)
  }
  /**
   * Assigns the data of an earlier single-process deployment to this runner. Others have no snapshot of
   * it.
   */
  const { directories } = local.context
  for (const environmentId of directories.names.filter(isEnvironmentId)) {
    if (openedBy(directories.snapshotsOf(environmentId)) === undefined)
      yield* open(environmentId, 0)
  }
  const isSure = ({ lease, placement }: Entry): boolean =>
    placement?.kind === "remote" ||
    (placement?.kind === "local" && lease?.isOver(times()) === false)

  const place = Effect.fnUntraced(function* (environmentId: EnvironmentId) {
    const deadline = now() + functionRuntime.callWaitMillis
    while (!state.isStopping && now() < deadline) {
      const entry = entries.get(environmentId) ?? (yield* open(environmentId, 0))
      if (entry.placement !== undefined && isSure(entry)) return entry.placement
      if (entry.placement !== undefined) yield* leaving.fence(environmentId, entry)
      if (entry.waiting >= functionLeases.passedMax) break
      entry.waiting += 1
      yield* Effect.timeoutOption(Deferred.await(entry.changed), deadline - now()).pipe(
        Effect.ensuring(Effect.sync(() => (entry.waiting -= 1)))
      )
    }
    return yield* new Unavailable()
  })

  return {
    place,
    elsewhere: yield* makeElsewhere(known),
    moved: Effect.fnUntraced(function* (environmentId: EnvironmentId, placement: Placement) {
      const entry = entries.get(environmentId)
      if (entry?.placement !== placement) return
      if (placement.kind === "local") yield* Effect.sleep(functionLeases.retryMillis)
      else yield* open(environmentId, functionLeases.retryMillis)
    }),
    here: (environmentId: EnvironmentId) => {
      const entry = entries.get(environmentId)
      if (entry?.placement?.kind !== "local" || !isSure(entry)) return undefined
      return entry.placement.host()
    }
  }
})
