/** Requests and responses of Functions beside deployments: status, secrets, databases and logs. */
import { Schema } from "effect"
import { isStorable, Timestamp } from "../text.ts"
import { functions } from "./limits.ts"

const Stored = Schema.Struct({
  binding: Schema.String,
  sizeBytes: Schema.Finite,
  // Absent in responses of a service of release 0.1.
  bound: Schema.optionalKey(Schema.Boolean)
})

/** What an environment has used of its bounds, as its runner measures it. It measures nothing for a bound of 0. */
export const FunctionsUsage = Schema.Struct({
  cpu: Schema.Struct({ usedMs: Schema.Int, maxMs: Schema.Int, waitMs: Schema.Int }),
  storage: Schema.Struct({
    bytes: Schema.Finite,
    maxBytes: Schema.Finite,
    state: Schema.Literals(["free", "full", "over"])
  })
})
export type FunctionsUsage = typeof FunctionsUsage.Type

/** The state of Functions in an environment. `secrets` are names only. */
export const FunctionsStatus = Schema.Struct({
  enabled: Schema.Boolean,
  suspended: Schema.Boolean,
  suspendedReason: Schema.NullOr(Schema.Literals(["balance", "abuse"])),
  limits: Schema.Struct({
    cpuMs: Schema.Int,
    // Absent in responses of a service of release 0.1.
    cpuMsMax: Schema.optionalKey(Schema.Int),
    subRequests: Schema.Int
  }),
  deployed: Schema.Boolean,
  version: Schema.NullOr(Schema.Int),
  url: Schema.String,
  crons: Schema.Array(Schema.String),
  durableObjects: Schema.Array(Schema.String),
  resources: Schema.Struct({
    databases: Schema.Array(Stored),
    kv: Schema.Array(Stored),
    files: Schema.Array(Stored),
    queues: Schema.Array(Schema.Struct({ binding: Schema.String, messages: Schema.Int }))
  }),
  // Absent in responses of a service of release 0.1.
  usage: Schema.optionalKey(Schema.NullOr(FunctionsUsage)),
  secrets: Schema.Array(Schema.String)
}).annotate({
  identifier: "FunctionsStatus",
  description:
    "The state of Functions in an environment. `limits` are those that hold; `cpuMs` is at most the operator's " +
    "`cpuMsMax`. `secrets` are names only. A resource that is not `bound` has data " +
    "of an earlier version. `usage` is null where no runner " +
    "has the environment: `cpu` of the last minute, with the milliseconds until calls begin again; `storage` " +
    "on disk, where code does not run in the state `over`. A bound of 0 is none, and nothing is measured then."
})
export type FunctionsStatus = typeof FunctionsStatus.Type

/** Limits of one call: CPU time in milliseconds, and requests that it sends. */
export const ChangedLimits = Schema.Struct({
  cpuMs: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: functions.cpuMillisMax }))
  ),
  subRequests: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: functions.subRequestsMax }))
  )
})
export type ChangedLimits = typeof ChangedLimits.Type

export const FunctionsDeleted = Schema.Struct({
  deleted: Schema.Literal(true),
  purged: Schema.Boolean
}).annotate({
  identifier: "FunctionsDeleted",
  description: "The code is deleted. `purged`: databases, KV, files, queues and secrets, too."
})

export const FunctionsSecretName = Schema.Struct({ name: Schema.String }).annotate({
  identifier: "FunctionsSecretName",
  description: "The name of a secret."
})

export const FunctionsSecrets = Schema.Struct({
  secrets: Schema.Array(Schema.Struct({ name: Schema.String, updatedAt: Timestamp }))
}).annotate({
  identifier: "FunctionsSecrets",
  description: "The names of secrets. No endpoint returns a value."
})

/** Text that can be stored, of 1 to `maxBytes` bytes in UTF-8. */
const bytesUpTo = (maxBytes: number) =>
  Schema.String.check(
    Schema.isMinLength(1),
    Schema.makeFilter((text: string) => {
      if (!isStorable(text)) return "Expected well-formed text without NUL"
      return new TextEncoder().encode(text).length > maxBytes
        ? `Expected at most ${maxBytes} bytes`
        : undefined
    })
  )

export const SecretValue = Schema.Struct({ value: bytesUpTo(functions.secretMaxBytes) })

/** A value of a row or a parameter; a blob is an array of its bytes. */
const SqlValue = Schema.Union([
  Schema.String,
  Schema.Finite,
  Schema.Null,
  Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 255 })))
])

/** A parameter. Text that is not well-formed would be stored as other text. */
const SqlParameter = SqlValue.check(
  Schema.makeFilter((value: typeof SqlValue.Type) =>
    typeof value !== "string" || value.isWellFormed()
      ? undefined
      : "Expected well-formed text, without half of a surrogate pair"
  )
)

export const Query = Schema.Struct({
  sql: bytesUpTo(functions.sqlMaxBytes),
  params: Schema.optionalKey(
    Schema.Array(SqlParameter).check(Schema.isMaxLength(functions.sqlParametersMax))
  )
})
export type Query = typeof Query.Type

export const QueryResult = Schema.Struct({
  columns: Schema.Array(Schema.String),
  rows: Schema.Array(Schema.Array(SqlValue)),
  rowsAffected: Schema.Int,
  lastInsertId: Schema.NullOr(Schema.Finite),
  truncated: Schema.optionalKey(Schema.Boolean)
}).annotate({
  identifier: "FunctionsQueryResult",
  description:
    `The result of a statement, at most ${functions.rowsMax} rows; \`truncated\` says that there were more. ` +
    "A blob is an array of bytes, an integer beyond 2^53 - 1 a text."
})

const Migration = Schema.Struct({
  name: Schema.String.check(
    Schema.isPattern(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/, {
      message: "Expected up to 128 letters, digits, dots, dashes and underscores"
    })
  ),
  sql: bytesUpTo(functions.sqlMaxBytes)
})

export const Migrations = Schema.Struct({
  migrations: Schema.Array(Migration).check(
    Schema.isMinLength(1),
    Schema.isMaxLength(functions.migrationsMax),
    Schema.makeFilter((all: ReadonlyArray<typeof Migration.Type>) =>
      new Set(all.map(({ name }) => name)).size === all.length
        ? undefined
        : "Expected each name once"
    )
  )
})
export type Migrations = typeof Migrations.Type

export const MigrationResult = Schema.Struct({
  applied: Schema.Array(Schema.String),
  skipped: Schema.Array(Schema.String),
  failed: Schema.NullOr(Schema.Struct({ name: Schema.String, message: Schema.String }))
}).annotate({
  identifier: "FunctionsMigrationResult",
  description: "Migrations by name. The first that fails is rolled back, and ends the run."
})

/** A line of the logs. `id` grows with time; it is the cursor `after`. */
export const FunctionsLogLine = Schema.Struct({
  id: Schema.String,
  at: Timestamp,
  level: Schema.Literals(["debug", "info", "warn", "error"]),
  message: Schema.String,
  version: Schema.Int
}).annotate({
  identifier: "FunctionsLogLine",
  description: "A line that a function has written, or that the service wrote about it."
})
export type FunctionsLogLine = typeof FunctionsLogLine.Type
