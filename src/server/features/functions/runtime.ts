/**
 * Runtime of functions. Each environment runs in its own workerd process, on one runner at a time.
 * Other runners forward calls to that runner. Its data is SQLite and files beside that process.
 */
import { Context, type Effect } from "effect"
import type {
  FeatureUnavailable,
  FunctionCpuExceeded,
  FunctionError,
  FunctionInvalid,
  FunctionsSuspended,
  NotFound,
  SqlError,
  Unavailable
} from "#rpc/errors/codes"

import type { EnvironmentId } from "#rpc/ids"
import type { FunctionBundle } from "./program.ts"
import type {
  DeletedEntries,
  DeliveryOutcome,
  EntryPage,
  EntryPageQuery,
  EntrySelection,
  EntryStore,
  FunctionHook,
  FunctionResources,
  Migration,
  MigrationResult,
  QueuedMessage,
  SqlResult,
  SqlValue,
  ValidatedFunction
} from "./stored-data.ts"

/** Reasons why no call of an environment can run now. */
export type NotRunning = FeatureUnavailable | FunctionsSuspended | NotFound | Unavailable

/** Reasons why a call has no result. */
export type CallFailure = NotRunning | FunctionCpuExceeded | FunctionError

/** Reasons why an operation on stored data has no result. */
export type StoreFailure = NotRunning | FunctionCpuExceeded

export class FunctionsRuntime extends Context.Service<
  FunctionsRuntime,
  {
    /** Reason why this deployment cannot run functions; undefined if it can. */
    readonly unavailable: string | undefined
    /** Fails if this runner cannot store the data of functions, for example on a full disk. */
    readonly checkDisk: Effect.Effect<void, Unavailable>
    /** Starts the modules beside the live version, for at most 2 s, and stops them. */
    readonly validate: (
      bundle: FunctionBundle
    ) => Effect.Effect<ValidatedFunction, FunctionInvalid | FeatureUnavailable | Unavailable>
    /**
     * Applies a change of a deployment, limits, secrets or the environment's state. Calls in progress
     * may end before the new state serves. The control plane calls it on every runner.
     */
    readonly changed: (environmentId: EnvironmentId) => Effect.Effect<void>
    /**
     * Replaces outdated versions on this runner by the live ones, after the runner may have missed
     * changes.
     */
    readonly missedChanges: Effect.Effect<void>
    /** Waits until the other runner that has the environment, if any, has applied the last change. */
    readonly settled: (environmentId: EnvironmentId) => Effect.Effect<void>
    /** Runs one statement on a database of the live version. */
    readonly query: (
      environmentId: EnvironmentId,
      binding: string,
      sql: string,
      params: ReadonlyArray<SqlValue>
    ) => Effect.Effect<SqlResult, SqlError | NotRunning | FunctionCpuExceeded>
    /** Lists keys or files of a store of the live version. */
    readonly entries: (
      environmentId: EnvironmentId,
      store: EntryStore,
      page: EntryPageQuery
    ) => Effect.Effect<EntryPage, StoreFailure>
    /** Deletes keys or files, at most `functions.entriesPerDelete`. */
    readonly deleteEntries: (
      environmentId: EnvironmentId,
      store: EntryStore,
      selection: EntrySelection
    ) => Effect.Effect<DeletedEntries, StoreFailure>
    /** Applies migrations by name, one transaction each, up to the first that fails. */
    readonly migrate: (
      environmentId: EnvironmentId,
      binding: string,
      migrations: ReadonlyArray<Migration>
    ) => Effect.Effect<MigrationResult, NotRunning | FunctionCpuExceeded>
    /** Calls `scheduled` of the live version; `scheduledTime` is in milliseconds since 1970. */
    readonly scheduled: (
      environmentId: EnvironmentId,
      cron: string,
      scheduledTime: number
    ) => Effect.Effect<void, CallFailure>
    /**
     * Passes a batch of messages to `queue` of the live version, and returns the outcome of each. The
     * control plane stores the messages and repeats unacknowledged ones.
     */
    readonly deliver: (
      environmentId: EnvironmentId,
      queue: string,
      messages: ReadonlyArray<QueuedMessage>
    ) => Effect.Effect<DeliveryOutcome, CallFailure>
    /**
     * Calls a hook of the live version now. A version without that export succeeds. The control plane
     * stores the events and repeats a call that fails.
     */
    readonly hook: (
      environmentId: EnvironmentId,
      hook: FunctionHook,
      payload: unknown
    ) => Effect.Effect<void, CallFailure>
    readonly resources: (
      environmentId: EnvironmentId
    ) => Effect.Effect<FunctionResources, FeatureUnavailable | Unavailable>
    /** Stops the process of the environment on this runner. Keeps its data. */
    readonly stop: (environmentId: EnvironmentId) => Effect.Effect<void>
    /** Stops the process and removes databases, KV, files, queues and snapshots. */
    readonly purge: (environmentId: EnvironmentId) => Effect.Effect<void, Unavailable>
  }
>()("server/features/functions/runtime/FunctionsRuntime") {}
