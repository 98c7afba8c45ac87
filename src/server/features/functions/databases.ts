/** Databases of Functions: statements and migrations on the databases of the live version. */
import { Effect } from "effect"
import type { EnvironmentCaller } from "#rpc/auth"
import type { Migrations, Query } from "#rpc/functions/responses"
import { invalidField } from "#server/platform/invalid-request"
import { Audit, type AuditEvent } from "../audit/service.ts"
import { FunctionsRuntime } from "./runtime.ts"
import type { SqlResult } from "./stored-data.ts"
import { hasSeveralStatements } from "./statements.ts"
import type { RequireStore } from "./stores.ts"

const eventOf = (
  action: AuditEvent["action"],
  binding: string,
  details: AuditEvent["details"]
): AuditEvent => ({
  action,
  target: { kind: "functionDatabase", id: binding },
  details: details ?? {}
})

const severalStatements = invalidField(
  "sql",
  "Expected one statement: send others by themselves, or as a migration"
)

const hasWritten = ({ columns, rowsAffected }: SqlResult): boolean =>
  rowsAffected > 0 || columns.length === 0

/** Runs statements and migrations. Writes those that change data to the audit log. */
export const makeDatabases = Effect.fnUntraced(function* (requireStore: RequireStore) {
  const audit = yield* Audit
  const runtime = yield* FunctionsRuntime
  return {
    query: Effect.fn("Functions.query")(function* (
      environment: EnvironmentCaller,
      binding: string,
      { params = [], sql }: Query
    ) {
      if (hasSeveralStatements(sql)) return yield* severalStatements
      yield* requireStore(environment, binding, "db")
      const result = yield* runtime.query(environment.environmentId, binding, sql, params)
      // The entry omits the statement: the log outlives the data, which it must not keep.
      if (hasWritten(result)) {
        const { rowsAffected } = result
        yield* audit.record(environment, eventOf("functions.query", binding, { rowsAffected }))
      }
      return result
    }),
    migrate: Effect.fn("Functions.migrate")(function* (
      environment: EnvironmentCaller,
      binding: string,
      { migrations }: Migrations
    ) {
      yield* requireStore(environment, binding, "db")
      const result = yield* runtime.migrate(environment.environmentId, binding, migrations)
      if (result.applied.length > 0) {
        const details = { applied: result.applied.slice(0, 20) }
        yield* audit.record(environment, eventOf("functions.migrate", binding, details))
      }
      return result
    })
  }
})
