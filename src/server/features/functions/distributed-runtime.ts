/** Runtime of functions across all runners. */
import { Effect, Layer, Schema } from "effect"
import {
  FeatureUnavailable,
  type FunctionCpuExceeded,
  FunctionError,
  FunctionInvalid,
  type SqlError,
  Unavailable
} from "#rpc/errors/codes"
import { functionRuntime } from "#rpc/functions/runtime-limits"
import type { EnvironmentId } from "#rpc/ids"
import { DiskFailure, writing } from "./host/disk.ts"
import { callError } from "./host/failures.ts"
import { FunctionHosts, type LocalFunctions } from "./host/local.ts"
import type { FunctionBundle } from "./program.ts"
import { results, type Failure, type Operation } from "./runners/operations.ts"
import { FunctionRoutes } from "./runners/routes.ts"
import {
  type CallFailure,
  FunctionsRuntime,
  type NotRunning,
  type StoreFailure
} from "./runtime.ts"
import { FunctionSnapshots } from "./snapshots.ts"
import { validate } from "./validate.ts"

const unavailableRuntime = (
  reason: string,
  { remove }: FunctionSnapshots["Service"]
): FunctionsRuntime["Service"] => {
  const refuse = () =>
    Effect.fail(
      new FeatureUnavailable({
        message: `Functions are unavailable on this runner: ${reason}`,
        details: { features: ["functions"] }
      })
    )
  return FunctionsRuntime.of({
    unavailable: reason,
    checkDisk: Effect.void,
    validate: refuse,
    query: refuse,
    entries: refuse,
    deleteEntries: refuse,
    migrate: refuse,
    scheduled: refuse,
    deliver: refuse,
    hook: refuse,
    resources: refuse,
    changed: () => Effect.void,
    missedChanges: Effect.void,
    settled: () => Effect.void,
    stop: () => Effect.void,
    purge: remove
  })
}

const makeRuntime = Effect.fnUntraced(function* ({ context, hosts }: LocalFunctions) {
  const routes = yield* FunctionRoutes
  const operate = <A, E>(
    schema: Schema.Codec<A, unknown>,
    environmentId: EnvironmentId,
    operation: Operation,
    errorOf: (failure: Failure) => E
  ): Effect.Effect<A, E> =>
    routes.operate(environmentId, operation).pipe(
      Effect.mapError(errorOf),
      Effect.flatMap((value) => Effect.orDie(Schema.decodeUnknownEffect(schema)(value)))
    )
  const run = (environmentId: EnvironmentId, operation: Operation) =>
    Effect.mapError(Effect.asVoid(routes.operate(environmentId, operation)), callFailure)
  return FunctionsRuntime.of({
    unavailable: undefined,
    checkDisk: Effect.catch(
      Effect.tryPromise({
        try: () => writing(() => context.directories.tryToWrite()),
        catch: (error) => error
      }),
      (error) =>
        error instanceof DiskFailure
          ? Effect.logError("Failed to write to SVC_DATA_DIR. Free space there", error.cause).pipe(
              Effect.andThen(Effect.fail(new Unavailable({ message: error.message })))
            )
          : Effect.die(error)
    ),
    validate: (bundle) => validated(context, bundle),
    changed: (environmentId) => Effect.promise(async () => hosts.known(environmentId)?.reload()),
    missedChanges: reloadChanged(hosts),
    settled: (environmentId) => Effect.ignore(routes.settled(environmentId)),
    query: (environmentId, binding, sql, params) => {
      const operation = { kind: "query", binding, sql, params } as const
      return operate(results.query, environmentId, operation, statementFailure)
    },
    migrate: (environmentId, binding, migrations) => {
      const operation = { kind: "migrate", binding, migrations } as const
      return operate(results.migrate, environmentId, operation, storeFailure)
    },
    entries: (environmentId, store, page) => {
      const operation = { kind: "entries", store, page } as const
      return operate(results.entries, environmentId, operation, storeFailure)
    },
    deleteEntries: (environmentId, store, selection) => {
      const operation = { kind: "deleteEntries", store, selection } as const
      return operate(results.deleteEntries, environmentId, operation, storeFailure)
    },
    scheduled: (environmentId, cron, scheduledTime) =>
      run(environmentId, { kind: "scheduled", cron, scheduledTime }),
    deliver: (environmentId, queue, messages) => {
      const operation = { kind: "deliver", queue, messages } as const
      return operate(results.deliver, environmentId, operation, callFailure)
    },
    hook: (environmentId, hook, payload) =>
      run(environmentId, { kind: "hook", hook, payload: jsonOf(payload) }),
    resources: (environmentId) =>
      operate(results.resources, environmentId, { kind: "resources" }, unavailableFailure),
    stop: (environmentId) =>
      Effect.promise(() => hosts.close(environmentId, functionRuntime.drainMillis)),
    purge: (environmentId) =>
      Effect.asVoid(
        Effect.mapError(routes.operate(environmentId, { kind: "purge" }), () => new Unavailable())
      )
  })
})

/** Number of environments that load concurrently after this runner may have missed changes. */
const looksAtOnce = 4

/**
 * Replaces outdated versions. Ends a process whose live version cannot be read, since it may no longer
 * be allowed to run.
 */
const reloadChanged = (hosts: LocalFunctions["hosts"]): Effect.Effect<void> =>
  Effect.suspend(() =>
    Effect.forEach(
      [...hosts.all],
      ([environmentId, host]) =>
        Effect.tryPromise(() => host.reloadIfChanged()).pipe(
          Effect.catch((error) =>
            Effect.logWarning("Failed to look for missed changes of functions", error.cause).pipe(
              Effect.annotateLogs({ environmentId }),
              Effect.andThen(Effect.promise(() => host.reload()))
            )
          )
        ),
      { concurrency: looksAtOnce, discard: true }
    )
  )

/**
 * Converts a failure of a call. A call that sent too many requests fails like one that threw an
 * exception.
 */
const callFailure = (failure: Failure): CallFailure => {
  if (failure._tag === "sql_error") return new Unavailable()
  return failure._tag === "function_subrequests_exceeded"
    ? new FunctionError({ message: failure.message })
    : failure
}

/** Converts a failure of a statement. A statement whose process ended meanwhile has no result. */
const statementFailure = (failure: Failure): SqlError | NotRunning | FunctionCpuExceeded =>
  failure._tag === "function_error" || failure._tag === "function_subrequests_exceeded"
    ? new Unavailable()
    : failure

const storeFailure = (failure: Failure): StoreFailure => {
  const known = statementFailure(failure)
  return known._tag === "sql_error" ? new Unavailable() : known
}

const unavailableFailure = (failure: Failure): FeatureUnavailable | Unavailable =>
  failure._tag === "feature_unavailable" ? failure : new Unavailable()

const jsonOf = Schema.decodeUnknownSync(Schema.Json)

const isStartFailure = Schema.is(Schema.Union([FunctionInvalid, FeatureUnavailable, Unavailable]))

const validated = (context: LocalFunctions["context"], bundle: FunctionBundle) =>
  Effect.catch(
    Effect.tryPromise({
      try: () => writing(() => validate(context, bundle)),
      catch: (error) => error
    }),
    (error) => {
      if (isStartFailure(error)) return Effect.fail(error)
      if (error instanceof DiskFailure) {
        return Effect.fail(new Unavailable({ message: error.message }))
      }
      return callError(error) === undefined ? Effect.die(error) : Effect.fail(new Unavailable())
    }
  )

export const FunctionsRuntimeLive = Layer.effect(
  FunctionsRuntime,
  Effect.gen(function* () {
    const { local } = yield* FunctionHosts
    return typeof local === "string"
      ? unavailableRuntime(local, yield* FunctionSnapshots)
      : yield* makeRuntime(local)
  })
)
