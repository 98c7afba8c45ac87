/**
 * The audit log. A change in Postgres and its entry commit in one transaction, so the log has neither
 * missing nor false entries. The log gets a change outside Postgres (a channel in the cluster) after
 * its success.
 *
 * Details name the changed object and never hold a secret value.
 */
import { Cause, Context, DateTime, Effect, Exit, Layer, Option, Schema } from "effect"
import { SecureRandom } from "effect/crypto"
import { HttpServerRequest } from "effect/http"
import { SqlClient, SqlError } from "effect/sql"
import type { AuditAction } from "#rpc/audit"
import { CurrentActor, type EnvironmentName } from "#rpc/auth"
import { Unavailable } from "#rpc/errors/codes"
import { newId, type ProjectId } from "#rpc/ids"
import { audit as limits } from "#rpc/limits"
import { AuditRepository } from "#sql/audit"
import { clientAddress } from "#server/platform/client-address"
import { sweepDaily } from "#server/platform/database"
import { Settings } from "#server/platform/settings/settings"

/** Action, target and details of one change. */
export interface AuditEvent {
  readonly action: AuditAction
  readonly target: { readonly kind: string; readonly id: string }
  readonly details?: Readonly<Record<string, Schema.Json>>
}

/** The project whose log receives the entry; `name` is the environment, absent for the whole project. */
export interface AuditScope {
  readonly projectId: ProjectId
  readonly name?: EnvironmentName
}

/** Writes the audit logs of all projects. */
export class Audit extends Context.Service<
  Audit,
  {
    /** Writes an entry; within a transaction, the entry commits or rolls back with it. */
    readonly record: (
      scope: AuditScope,
      event: AuditEvent
    ) => Effect.Effect<void, never, CurrentActor>
    /**
     * Runs a change in Postgres and writes its entry in the same transaction. Writes no entry when
     * `eventOf` returns `undefined`, which means that nothing changed.
     */
    readonly recordChange: <A, E, R>(
      scope: AuditScope,
      change: Effect.Effect<A, E, R>,
      eventOf: (changed: A) => AuditEvent | undefined
    ) => Effect.Effect<A, E, R | CurrentActor>
    /**
     * Runs a change outside Postgres and writes its entry after success. A rejected change gets no
     * entry. When the outcome is unknown (`unavailable`, a defect, an interruption), the entry has
     * `outcome: "unknown"`.
     */
    readonly recordAfter: <A, E, R>(
      scope: AuditScope,
      change: Effect.Effect<A, E, R>,
      event: AuditEvent
    ) => Effect.Effect<A, E, R | CurrentActor>
  }
>()("server/features/audit/service/Audit") {
  static readonly layer = Layer.effect(
    Audit,
    Effect.gen(function* () {
      const repository = yield* AuditRepository
      const sql = yield* SqlClient.SqlClient
      const record = yield* makeRecord
      yield* sweepDaily("Audit entries", (now) =>
        repository.sweep(DateTime.subtract(now, { days: limits.keptDays }))
      )
      return Audit.of({
        record,
        recordChange: (scope, change, eventOf) => {
          const both = Effect.tap(change, (changed) => {
            const event = eventOf(changed)
            return event === undefined ? Effect.void : record(scope, event)
          })
          return Effect.catchIf(sql.withTransaction(both), SqlError.isSqlError, Effect.die)
        },
        recordAfter: (scope, change, event) =>
          Effect.onExit(change, (exit) => {
            if (Exit.isSuccess(exit)) return record(scope, event)
            if (isRejected(exit.cause)) return Effect.void
            return record(scope, { ...event, details: { ...event.details, outcome: "unknown" } })
          })
      })
    })
  )
}

const isUnavailable = Schema.is(Unavailable)

/** Whether the change failed with a rule's error and therefore did not happen. */
const isRejected = (cause: Cause.Cause<unknown>): boolean =>
  Option.match(Cause.findErrorOption(cause), {
    onNone: () => false,
    onSome: (error) => !isUnavailable(error)
  })

const makeRecord = Effect.gen(function* () {
  const repository = yield* AuditRepository
  const random = yield* SecureRandom.SecureRandom
  const { trustedProxies } = yield* Settings
  return Effect.fn("Audit.record")(function* (
    { name, projectId }: AuditScope,
    { action, details = {}, target }: AuditEvent
  ) {
    const actor = yield* CurrentActor
    const request = yield* Effect.serviceOption(HttpServerRequest.HttpServerRequest)
    yield* repository.insert({
      id: yield* Effect.provideService(newId.auditEntry, SecureRandom.SecureRandom, random),
      at: yield* DateTime.now,
      projectId,
      env: name ?? null,
      actorKind: actor.kind,
      actorId: actor.id,
      actorName: actor.name,
      address: Option.getOrNull(Option.map(request, (it) => clientAddress(it, trustedProxies))),
      action,
      targetKind: target.kind,
      targetId: target.id,
      details
    })
  })
})
