/**
 * The audit log (spec section 4.9, decisions 3.13.6). A change in Postgres and its entry are one
 * transaction: nothing happens unlogged, and nothing is logged that did not happen. A change that
 * lives elsewhere (a channel in the cluster) is logged once it has succeeded.
 *
 * Details never hold a secret: whoever records a change names what it touched, not its value.
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

/** A change as it is told to the log. */
export interface AuditEvent {
  readonly action: AuditAction
  readonly target: { readonly kind: string; readonly id: string }
  readonly details?: Readonly<Record<string, Schema.Json>>
}

/** Whose log: a project, and the environment of it that the change is about. */
export interface AuditScope {
  readonly projectId: ProjectId
  readonly name?: EnvironmentName
}

/** The log of all projects. */
export class Audit extends Context.Service<
  Audit,
  {
    /** Writes an entry; within a transaction, it stands or falls with it. */
    readonly record: (
      scope: AuditScope,
      event: AuditEvent
    ) => Effect.Effect<void, never, CurrentActor>
    /** Makes a change in Postgres and writes its entry, both or neither; none where none is told. */
    readonly recordChange: <A, E, R>(
      scope: AuditScope,
      change: Effect.Effect<A, E, R>,
      told: (changed: A) => AuditEvent | undefined
    ) => Effect.Effect<A, E, R | CurrentActor>
    /**
     * Makes a change elsewhere and writes its entry once it is made; a change that was refused has
     * none. Where nobody knows what became of it, the entry says `outcome: "unknown"`.
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
      const rows = yield* AuditRepository
      const sql = yield* SqlClient.SqlClient
      const record = yield* makeRecord
      yield* sweepDaily("Audit entries", (now) =>
        rows.sweep(DateTime.subtract(now, { days: limits.keptDays }))
      )
      return Audit.of({
        record,
        recordChange: (scope, change, told) => {
          const both = Effect.tap(change, (changed) => {
            const event = told(changed)
            return event === undefined ? Effect.void : record(scope, event)
          })
          return Effect.catchIf(sql.withTransaction(both), SqlError.isSqlError, Effect.die)
        },
        recordAfter: (scope, change, event) =>
          Effect.onExit(change, (exit) => {
            if (Exit.isSuccess(exit)) return record(scope, event)
            if (isRefused(exit.cause)) return Effect.void
            return record(scope, { ...event, details: { ...event.details, outcome: "unknown" } })
          })
      })
    })
  )
}

const isUnavailable = Schema.is(Unavailable)

/** Whether a change was told no, in which case it was not made. */
const isRefused = (cause: Cause.Cause<unknown>): boolean =>
  Option.match(Cause.findErrorOption(cause), {
    onNone: () => false,
    onSome: (error) => !isUnavailable(error)
  })

const makeRecord = Effect.gen(function* () {
  const rows = yield* AuditRepository
  const random = yield* SecureRandom.SecureRandom
  const { trustedProxies } = yield* Settings
  return Effect.fn("Audit.record")(function* (
    { name, projectId }: AuditScope,
    { action, details = {}, target }: AuditEvent
  ) {
    const actor = yield* CurrentActor
    const request = yield* Effect.serviceOption(HttpServerRequest.HttpServerRequest)
    yield* rows.insert({
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
