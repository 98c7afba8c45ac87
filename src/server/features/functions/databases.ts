/** Databases of Functions: statements and migrations on the databases of the live version. */
import { Effect, Option } from "effect"
import type { EnvironmentCaller } from "#rpc/auth"
import { FunctionsSuspended, InvalidRequest, NotFound } from "#rpc/errors/codes"
import type { Migrations, Query } from "#rpc/functions/responses"
import { FunctionsDeploymentRepository } from "#sql/functions/deployments"
import { FunctionsRepository } from "#sql/functions/settings"
import { Audit, type AuditEvent } from "../audit/service.ts"
import { FunctionsRuntime, type SqlAnswer } from "./runtime.ts"
import { hasSeveralStatements } from "./statements.ts"

const eventOf = (
  action: AuditEvent["action"],
  binding: string,
  details: AuditEvent["details"]
): AuditEvent => ({
  action,
  target: { kind: "functionDatabase", id: binding },
  details: details ?? {}
})

/** Fails unless the live version binds a database of this name. */
const makeRequireDatabase = Effect.gen(function* () {
  const deployments = yield* FunctionsDeploymentRepository
  const repository = yield* FunctionsRepository
  return Effect.fnUntraced(function* ({ environmentId }: EnvironmentCaller, binding: string) {
    const { liveVersion, suspendedReason } = yield* repository.find(environmentId)
    if (liveVersion === null) return yield* new NotFound()
    const live = yield* deployments.find({ environmentId, version: liveVersion })
    const isBound = Option.exists(live, ({ bindings }) =>
      bindings.some(({ name, type }) => type === "db" && name === binding)
    )
    if (!isBound) return yield* new NotFound()
    if (suspendedReason !== null) return yield* new FunctionsSuspended()
  })
})

const severalStatements = new InvalidRequest({
  details: {
    issues: [
      {
        path: "sql",
        message: "Expected one statement: send others by themselves, or as a migration"
      }
    ]
  }
})

const hasWritten = ({ columns, rowsAffected }: SqlAnswer): boolean =>
  rowsAffected > 0 || columns.length === 0

/** Runs statements and migrations. Writes those that change data to the audit log. */
export const makeDatabases = Effect.gen(function* () {
  const audit = yield* Audit
  const requireDatabase = yield* makeRequireDatabase
  const runtime = yield* FunctionsRuntime
  return {
    query: Effect.fn("Functions.query")(function* (
      environment: EnvironmentCaller,
      binding: string,
      { params = [], sql }: Query
    ) {
      if (hasSeveralStatements(sql)) return yield* severalStatements
      yield* requireDatabase(environment, binding)
      const answer = yield* runtime.query(environment.environmentId, binding, sql, params)
      // The entry omits the statement: the log outlives the data, which it must not keep.
      if (hasWritten(answer)) {
        const { rowsAffected } = answer
        yield* audit.record(environment, eventOf("functions.query", binding, { rowsAffected }))
      }
      return answer
    }),
    migrate: Effect.fn("Functions.migrate")(function* (
      environment: EnvironmentCaller,
      binding: string,
      { migrations }: Migrations
    ) {
      yield* requireDatabase(environment, binding)
      const answer = yield* runtime.migrate(environment.environmentId, binding, migrations)
      if (answer.applied.length > 0) {
        const details = { applied: answer.applied.slice(0, 20) }
        yield* audit.record(environment, eventOf("functions.migrate", binding, details))
      }
      return answer
    })
  }
})
