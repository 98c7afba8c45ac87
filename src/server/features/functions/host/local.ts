/** Functions of this runner: its hosts, their control plane, and the suspension for abuse. */
import { tmpdir } from "node:os"
import { mkdtempSync, rmSync } from "node:fs"
import { join } from "node:path"
import { Clock, Context, Effect, Layer, Schedule } from "effect"
import { functionRuntime } from "#rpc/functions/runtime-limits"
import type { EnvironmentId } from "#rpc/ids"
import { monotonicMillis } from "#entities/monotonic"
import { Settings } from "#server/platform/settings/settings"
import { findPrograms, type Programs, Unsupported } from "#server/platform/workerd/programs"
import { Compiler } from "../compiler/compiler.ts"
import { FunctionsLogs, FunctionsSource, FunctionsUsage } from "../control-plane.ts"
import { makeBindings } from "./bindings.ts"
import { deniedAddresses } from "./denied-addresses.ts"
import type { HostOptions } from "./host.ts"
import type { HostContext } from "./host-context.ts"
import { Hosts } from "./hosts.ts"
import { DataDirectories } from "./directories.ts"
import { DiskSpace } from "./disk-space.ts"
import { recordProcess } from "./recorded-process.ts"
import { Looks } from "./storage-use.ts"

const minuteMillis = 60_000

const lowDisk =
  "The disk of SVC_DATA_DIR has less space than SVC_FUNCTIONS_DISK_RESERVE_MB: functions store no more"

/** Counts the kills and crashes of an environment's process within a minute. */
class KillCounter {
  readonly #at = new Map<string, Array<number>>()

  add(environmentId: string, now: number): number {
    const recent = (this.#at.get(environmentId) ?? []).filter((at) => now - at < minuteMillis)
    recent.push(now)
    this.#at.set(environmentId, recent)
    return recent.length
  }

  forget(environmentId: string): void {
    this.#at.delete(environmentId)
  }
}

/** Handlers of the hosts' reports, as callbacks that start fibers. */
const makeReports = Effect.gen(function* () {
  const source = yield* FunctionsSource
  const logs = yield* FunctionsLogs
  const usage = yield* FunctionsUsage
  const bindings = yield* makeBindings
  const context = yield* Effect.context<never>()
  const runFork = Effect.runForkWith(context)
  const runPromise = Effect.runPromiseWith(context)
  const kills = new KillCounter()
  const warn = (what: string) => (cause: unknown) => Effect.logWarning(`Failed to ${what}`, cause)
  return (
    environmentId: EnvironmentId,
    hosts: () => Hosts,
    { now, directories }: Pick<HostContext, "now" | "directories">
  ): Omit<HostOptions, "environmentId"> => ({
    load: () => runPromise(source.load(environmentId)),
    handle: (call) => {
      const program = hosts().known(environmentId)?.program
      const queues = (program?.bindings ?? []).filter(({ type }) => type === "queue")
      return runPromise(bindings(environmentId, new Set(queues.map(({ name }) => name)), call))
    },
    onLogs: (lines) =>
      runFork(Effect.catchCause(logs.append(environmentId, lines), warn("keep log lines"))),
    onUsage: (used) =>
      runFork(Effect.catchCause(usage.add(environmentId, used), warn("meter functions"))),
    onDiskFailure: ({ cause }) =>
      runFork(
        Effect.logError(
          "Failed to write the data of functions. Free space in SVC_DATA_DIR",
          cause
        ).pipe(Effect.annotateLogs({ environmentId }))
      ),
    onStart: (pid) => recordProcess(directories.snapshotsOf(environmentId), pid),
    onKill: () => {
      if (kills.add(environmentId, now()) < functionRuntime.killsPerMinute) return
      kills.forget(environmentId)
      const suspend = source
        .suspend(environmentId)
        .pipe(Effect.andThen(Effect.promise(async () => hosts().known(environmentId)?.reload())))
      runFork(Effect.catchCause(suspend, warn("suspend functions")))
    }
  })
})

/**
 * Creates the directory of the sockets. Sockets need short paths, which a data directory may not have.
 */
const makeSocketDirectory = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "svc-functions-"))),
  (directory) => Effect.sync(() => rmSync(directory, { recursive: true, force: true }))
)

/** Hosts of this runner. They live as long as the scope. */
const makeLocalFunctions = Effect.fnUntraced(function* (programs: Programs) {
  const settings = yield* Settings
  const clock = yield* Clock.Clock
  const now = monotonicMillis(clock)
  const reportsOf = yield* makeReports
  const compiler = yield* Effect.acquireRelease(
    Effect.sync(() => new Compiler()),
    (it) => Effect.sync(() => it.stop())
  )
  const sockets = yield* makeSocketDirectory
  const directories = new DataDirectories(settings.dataDir, sockets, programs.hasOwnUsers)
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const { diskReserveBytes } = settings.functions
  const diskSpace = new DiskSpace(directories.root, diskReserveBytes, now, (isLow) =>
    runFork(isLow ? Effect.logError(lowDisk) : Effect.logInfo("Functions may store data again"))
  )
  const context: Omit<HostContext, "acquireStartSlot"> = {
    programs,
    compiler,
    directories,
    runtimeDate: programs.releaseDay,
    memoryBytes: settings.functions.memoryBytes,
    storageBytes: settings.functions.storageBytes,
    diskSpace,
    looks: new Looks(),
    onStorageFailure: (error) =>
      void runFork(
        Effect.logWarning("Failed to measure or compact the storage of functions", error)
      ),
    cpuMillisPerMinute: settings.functions.cpuMillisPerMinute,
    cpuMillisMax: settings.functions.cpuMillisMax,
    callsMax: settings.functions.callsMax,
    deniedAddresses: deniedAddresses(),
    now,
    wallClock: () => clock.currentTimeMillisUnsafe()
  }
  const hosts: Hosts = new Hosts({
    context,
    processesMax: settings.functions.processes,
    optionsOf: (environmentId) => reportsOf(environmentId as EnvironmentId, () => hosts, context)
  })
  yield* Effect.addFinalizer(() =>
    Effect.promise(() => hosts.closeAll(functionRuntime.drainMillis))
  )
  const readDisk = Effect.tryPromise(() => diskSpace.refresh()).pipe(
    Effect.catch((error) => Effect.logWarning("Failed to read the space of the disk", error))
  )
  yield* Effect.andThen(
    readDisk,
    Effect.sync(() => hosts.sweep())
  ).pipe(Effect.repeat(Schedule.spaced(functionRuntime.logFlushMillis)), Effect.forkScoped)
  return { hosts, context: { ...context, acquireStartSlot: () => hosts.acquireStartSlot() } }
})

export type LocalFunctions = Effect.Success<ReturnType<typeof makeLocalFunctions>>

/** Finds the programs; returns the reason if functions cannot run here. */
const makePrograms = Effect.gen(function* () {
  const { functions } = yield* Settings
  if (functions.processes === 0) return "SVC_FUNCTIONS_PROCESSES is 0."
  return yield* Effect.tryPromise({ try: findPrograms, catch: (error) => error }).pipe(
    Effect.catch((error) =>
      error instanceof Unsupported ? Effect.succeed(error.message) : Effect.die(error)
    )
  )
})

/**
 * Functions of this runner, or the reason why it runs none. A machine that cannot sandbox untrusted
 * code runs none.
 */
export class FunctionHosts extends Context.Service<
  FunctionHosts,
  { readonly local: LocalFunctions | string }
>()("server/features/functions/host/local/FunctionHosts") {
  static readonly layer = Layer.effect(
    FunctionHosts,
    Effect.gen(function* () {
      const programs = yield* makePrograms
      if (typeof programs === "string") {
        yield* Effect.logInfo(`Functions are unavailable on this runner: ${programs}`)
        return FunctionHosts.of({ local: programs })
      }
      if (!programs.hasOwnUsers) {
        yield* Effect.logDebug(
          "Functions of all environments run as the user of the service: root could give each its own"
        )
      }
      return FunctionHosts.of({ local: yield* makeLocalFunctions(programs) })
    })
  )
}
