/**
 * Runtime of functions. Each environment runs in a workerd process of its own, on one runner at a time;
 * calls that reach another runner are passed on. Its data is SQLite and files beside that process.
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
import type { QueueContentType } from "./control-plane.ts"

/** Why no call of an environment can run now. */
export type NotRunning = FeatureUnavailable | FunctionsSuspended | NotFound | Unavailable

/** Why a call has no result. */
export type CallFailure = NotRunning | FunctionCpuExceeded | FunctionError

/** A value of a row or a parameter; a blob is an array of its bytes. */
export type SqlValue = string | number | null | ReadonlyArray<number>

export interface SqlAnswer {
  readonly columns: ReadonlyArray<string>
  /** At most `functions.queryRows`. */
  readonly rows: ReadonlyArray<ReadonlyArray<SqlValue>>
  readonly rowsAffected: number
  readonly lastInsertId: number | null
}

export interface Migration {
  readonly name: string
  readonly sql: string
}

export interface MigrationAnswer {
  readonly applied: ReadonlyArray<string>
  readonly skipped: ReadonlyArray<string>
  readonly failed: { readonly name: string; readonly message: string } | null
}

/** Sizes of what an environment stores. */
export interface FunctionResources {
  readonly databases: ReadonlyArray<{ readonly binding: string; readonly sizeBytes: number }>
  readonly kv: ReadonlyArray<{ readonly binding: string; readonly sizeBytes: number }>
  readonly files: ReadonlyArray<{ readonly binding: string; readonly sizeBytes: number }>
  readonly queues: ReadonlyArray<{ readonly binding: string; readonly messages: number }>
}

/** What a deployment exports. Events are stored only for hooks that the live version has. */
export interface ValidatedFunction {
  readonly hooks: ReadonlyArray<FunctionHook>
}

/** A message of a queue; `attempts` includes this one. */
export interface QueuedMessage {
  readonly id: string
  /** Milliseconds since 1970. */
  readonly sentAt: number
  readonly contentType: QueueContentType
  readonly body: Uint8Array
  readonly attempts: number
}

/** What became of a batch: messages in neither list are acknowledged. */
export interface DeliveryOutcome {
  /** Messages to deliver again, after this many seconds if given. */
  readonly retry: ReadonlyArray<{ readonly id: string; readonly delaySeconds?: number }>
}

/** Names of the optional exports that are called after the fact. */
export type FunctionHook = "onStats" | "onRoomClosed" | "onPlayerCreated"

export class FunctionsRuntime extends Context.Service<
  FunctionsRuntime,
  {
    /** Why this deployment cannot run functions; undefined if it can. */
    readonly unavailable: string | undefined
    /** Fails where this runner cannot store the data of functions, as on a full disk. */
    readonly checkDisk: Effect.Effect<void, Unavailable>
    /** Starts the modules beside the live version, at most 2 s, and stops them. */
    readonly validate: (
      bundle: FunctionBundle
    ) => Effect.Effect<ValidatedFunction, FunctionInvalid | FeatureUnavailable | Unavailable>
    /**
     * A deployment, limits, secrets, or the state of the environment has changed: calls under way may end,
     * then the new state serves. The control plane calls it on every runner.
     */
    readonly changed: (environmentId: EnvironmentId) => Effect.Effect<void>
    /** Changes may have been missed: what is no longer live on this runner is replaced by what is. */
    readonly missedChanges: Effect.Effect<void>
    /** Waits until the last change is in force on the other runner that has the environment, if one has. */
    readonly settled: (environmentId: EnvironmentId) => Effect.Effect<void>
    /** One statement on a database of the live version. */
    readonly query: (
      environmentId: EnvironmentId,
      binding: string,
      sql: string,
      params: ReadonlyArray<SqlValue>
    ) => Effect.Effect<SqlAnswer, SqlError | NotRunning | FunctionCpuExceeded>
    /** Applies migrations by name, one transaction each, up to the first that fails. */
    readonly migrate: (
      environmentId: EnvironmentId,
      binding: string,
      migrations: ReadonlyArray<Migration>
    ) => Effect.Effect<MigrationAnswer, NotRunning | FunctionCpuExceeded>
    /** Calls `scheduled` of the live version; `scheduledTime` is in milliseconds since 1970. */
    readonly scheduled: (
      environmentId: EnvironmentId,
      cron: string,
      scheduledTime: number
    ) => Effect.Effect<void, CallFailure>
    /**
     * Hands a batch of messages to `queue` of the live version, and says what became of each. The control
     * plane stores the messages and repeats what is not acknowledged.
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
    /** Stops the process of the environment on this runner; data is kept. */
    readonly stop: (environmentId: EnvironmentId) => Effect.Effect<void>
    /** Stops the process and removes databases, KV, files, queues and snapshots. */
    readonly purge: (environmentId: EnvironmentId) => Effect.Effect<void, Unavailable>
  }
>()("server/features/functions/runtime/FunctionsRuntime") {}
