/**
 * Requests to the stored data and hooks of an environment, and their results. Runners send them to each
 * other, and the host's workers answer in these forms.
 */
import { Schema } from "effect"
import { FunctionsUsage, MigrationResult as MigrationResponse } from "#rpc/functions/responses"

/** Value of a row or a parameter. A blob is an array of its bytes, an integer beyond 2^53 - 1 a text. */
export const SqlValue = Schema.Union([
  Schema.String,
  Schema.Finite,
  Schema.Null,
  Schema.Array(Schema.Finite)
])
export type SqlValue = typeof SqlValue.Type

/** Result of a statement: at most `functions.queryRows` rows. `truncated`: the statement had more. */
export const SqlResult = Schema.Struct({
  columns: Schema.Array(Schema.String),
  rows: Schema.Array(Schema.Array(SqlValue)),
  rowsAffected: Schema.Finite,
  lastInsertId: Schema.NullOr(Schema.Finite),
  truncated: Schema.optionalKey(Schema.Boolean)
})
export type SqlResult = typeof SqlResult.Type

export const Migration = Schema.Struct({ name: Schema.String, sql: Schema.String })
export type Migration = typeof Migration.Type

export const MigrationResult = MigrationResponse
export type MigrationResult = typeof MigrationResult.Type

/** Store of entries: key-value storage or files. */
export const EntryStore = Schema.Struct({
  type: Schema.Literals(["kv", "files"]),
  binding: Schema.String
})
export type EntryStore = typeof EntryStore.Type

/** Entries to list, after a cursor of the page before. */
export const EntryPageQuery = Schema.Struct({
  prefix: Schema.String,
  cursor: Schema.NullOr(Schema.String),
  limit: Schema.Int
})
export type EntryPageQuery = typeof EntryPageQuery.Type

/** A page of entries; `expiresAt` is in seconds since 1970. */
export const EntryPage = Schema.Struct({
  entries: Schema.Array(
    Schema.Struct({
      name: Schema.String,
      sizeBytes: Schema.NullOr(Schema.Finite),
      expiresAt: Schema.NullOr(Schema.Finite)
    })
  ),
  cursor: Schema.NullOr(Schema.String)
})
export type EntryPage = typeof EntryPage.Type

/** Entries to delete, by name or by prefix. */
export const EntrySelection = Schema.Union([
  Schema.Struct({ name: Schema.String }),
  Schema.Struct({ prefix: Schema.String })
])
export type EntrySelection = typeof EntrySelection.Type

export const DeletedEntries = Schema.Struct({ deleted: Schema.Int, more: Schema.Boolean })
export type DeletedEntries = typeof DeletedEntries.Type

const Sizes = Schema.Array(Schema.Struct({ binding: Schema.String, sizeBytes: Schema.Finite }))

/** Sizes of an environment's stored data; `usage` is absent if no process ran since the runner's start. */
export const FunctionResources = Schema.Struct({
  databases: Sizes,
  kv: Sizes,
  files: Sizes,
  queues: Schema.Array(Schema.Struct({ binding: Schema.String, messages: Schema.Finite })),
  usage: Schema.optionalKey(FunctionsUsage)
})
export type FunctionResources = typeof FunctionResources.Type

/** Encoding of a message body, as in Cloudflare's queues. */
export const QueueContentType = Schema.Literals(["json", "text", "bytes", "v8"])
export type QueueContentType = typeof QueueContentType.Type

/** A message of a queue; `sentAt` is in milliseconds since 1970, `attempts` includes this one. */
export const QueuedMessage = Schema.Struct({
  id: Schema.String,
  sentAt: Schema.Finite,
  contentType: QueueContentType,
  body: Schema.Uint8Array,
  attempts: Schema.Finite
})
export type QueuedMessage = typeof QueuedMessage.Type

/** Outcome of a batch: the messages to deliver again, after `delaySeconds` if given. It acknowledges the others. */
export const DeliveryOutcome = Schema.Struct({
  retry: Schema.Array(
    Schema.Struct({ id: Schema.String, delaySeconds: Schema.optionalKey(Schema.Finite) })
  )
})
export type DeliveryOutcome = typeof DeliveryOutcome.Type

/** Names of the optional exports that receive events. */
export const FunctionHook = Schema.Literals(["onStats", "onRoomClosed", "onPlayerCreated"])
export type FunctionHook = typeof FunctionHook.Type

/** Exports of a deployment. The service stores events only for hooks that the live version has. */
export const ValidatedFunction = Schema.Struct({ hooks: Schema.Array(FunctionHook) })
export type ValidatedFunction = typeof ValidatedFunction.Type
