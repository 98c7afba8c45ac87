/** Operations of the service on an environment, in the format between runners. */
import { Schema } from "effect"
import {
  FeatureUnavailable,
  FunctionCpuExceeded,
  FunctionError,
  FunctionsSuspended,
  FunctionSubrequestsExceeded,
  NotFound,
  SqlError,
  Unavailable
} from "#rpc/errors/codes"
import {
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
  SqlValue
} from "../stored-data.ts"

export const Operation = Schema.Union([
  Schema.Struct({
    kind: Schema.Literal("query"),
    binding: Schema.String,
    sql: Schema.String,
    params: Schema.Array(SqlValue)
  }),
  Schema.Struct({
    kind: Schema.Literal("migrate"),
    binding: Schema.String,
    migrations: Schema.Array(Migration)
  }),
  Schema.Struct({ kind: Schema.Literal("entries"), store: EntryStore, page: EntryPageQuery }),
  Schema.Struct({
    kind: Schema.Literal("deleteEntries"),
    store: EntryStore,
    selection: EntrySelection
  }),
  Schema.Struct({
    kind: Schema.Literal("scheduled"),
    cron: Schema.String,
    scheduledTime: Schema.Finite
  }),
  Schema.Struct({
    kind: Schema.Literal("deliver"),
    queue: Schema.String,
    messages: Schema.Array(QueuedMessage)
  }),
  Schema.Struct({ kind: Schema.Literal("hook"), hook: FunctionHook, payload: Schema.Json }),
  Schema.Struct({ kind: Schema.Literal("resources") }),
  /** Waits until the receiving runner has applied the last change. */
  Schema.Struct({ kind: Schema.Literal("settle") }),
  Schema.Struct({ kind: Schema.Literal("purge") })
])
export type Operation = typeof Operation.Type

const Text = Schema.fromJsonString(Schema.toCodecJson(Operation))
export const encodeOperation = Schema.encodeSync(Text)
export const decodeOperation = Schema.decodeUnknownSync(Text)

/** Results of the operations. */
export const results = {
  query: SqlResult,
  migrate: MigrationResult,
  entries: EntryPage,
  deleteEntries: DeletedEntries,
  deliver: DeliveryOutcome,
  resources: FunctionResources
}

export const Failure = Schema.Union([
  FeatureUnavailable,
  FunctionCpuExceeded,
  FunctionError,
  FunctionsSuspended,
  FunctionSubrequestsExceeded,
  NotFound,
  SqlError,
  Unavailable
])
export type Failure = typeof Failure.Type

const Reply = Schema.fromJsonString(
  Schema.toCodecJson(
    Schema.Union([Schema.Struct({ value: Schema.Json }), Schema.Struct({ failure: Failure })])
  )
)
export const encodeReply = Schema.encodeUnknownSync(Reply)
export const decodeReply = Schema.decodeUnknownSync(Reply)
