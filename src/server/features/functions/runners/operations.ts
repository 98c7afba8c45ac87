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
import { DeletedEntryFields, EntryPageFields } from "../host/operations.ts"

const SqlValue = Schema.Union([
  Schema.String,
  Schema.Finite,
  Schema.Null,
  Schema.Array(Schema.Finite)
])

const Message = Schema.Struct({
  id: Schema.String,
  sentAt: Schema.Finite,
  contentType: Schema.Literals(["json", "text", "bytes", "v8"]),
  body: Schema.Uint8Array,
  attempts: Schema.Finite
})

const Store = Schema.Struct({
  type: Schema.Literals(["kv", "files"]),
  binding: Schema.String
})

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
    migrations: Schema.Array(Schema.Struct({ name: Schema.String, sql: Schema.String }))
  }),
  Schema.Struct({
    kind: Schema.Literal("entries"),
    store: Store,
    page: Schema.Struct({
      prefix: Schema.String,
      cursor: Schema.NullOr(Schema.String),
      limit: Schema.Int
    })
  }),
  Schema.Struct({
    kind: Schema.Literal("deleteEntries"),
    store: Store,
    selection: Schema.Union([
      Schema.Struct({ name: Schema.String }),
      Schema.Struct({ prefix: Schema.String })
    ])
  }),
  Schema.Struct({
    kind: Schema.Literal("scheduled"),
    cron: Schema.String,
    scheduledTime: Schema.Finite
  }),
  Schema.Struct({
    kind: Schema.Literal("deliver"),
    queue: Schema.String,
    messages: Schema.Array(Message)
  }),
  Schema.Struct({
    kind: Schema.Literal("hook"),
    hook: Schema.Literals(["onStats", "onRoomClosed", "onPlayerCreated"]),
    payload: Schema.Json
  }),
  Schema.Struct({ kind: Schema.Literal("resources") }),
  /** Waits until the receiving runner has applied the last change. */
  Schema.Struct({ kind: Schema.Literal("settle") }),
  Schema.Struct({ kind: Schema.Literal("purge") })
])
export type Operation = typeof Operation.Type

const Text = Schema.fromJsonString(Schema.toCodecJson(Operation))
export const encodeOperation = Schema.encodeSync(Text)
export const decodeOperation = Schema.decodeUnknownSync(Text)

const Sized = Schema.Array(Schema.Struct({ binding: Schema.String, sizeBytes: Schema.Finite }))

/** Results of the operations. */
export const answers = {
  query: Schema.Struct({
    columns: Schema.Array(Schema.String),
    rows: Schema.Array(Schema.Array(SqlValue)),
    rowsAffected: Schema.Finite,
    lastInsertId: Schema.NullOr(Schema.Finite),
    truncated: Schema.optionalKey(Schema.Boolean)
  }),
  migrate: Schema.Struct({
    applied: Schema.Array(Schema.String),
    skipped: Schema.Array(Schema.String),
    failed: Schema.NullOr(Schema.Struct({ name: Schema.String, message: Schema.String }))
  }),
  entries: EntryPageFields,
  deleteEntries: DeletedEntryFields,
  deliver: Schema.Struct({
    retry: Schema.Array(
      Schema.Struct({ id: Schema.String, delaySeconds: Schema.optionalKey(Schema.Finite) })
    )
  }),
  resources: Schema.Struct({
    databases: Sized,
    kv: Sized,
    files: Sized,
    queues: Schema.Array(Schema.Struct({ binding: Schema.String, messages: Schema.Finite })),
    usage: Schema.optionalKey(
      Schema.Struct({
        cpu: Schema.Struct({ usedMs: Schema.Int, maxMs: Schema.Int, waitMs: Schema.Int }),
        storage: Schema.Struct({
          bytes: Schema.Finite,
          maxBytes: Schema.Finite,
          state: Schema.Literals(["free", "full", "over"])
        })
      })
    )
  }),
  nothing: Schema.Null
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
