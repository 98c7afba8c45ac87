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
import type { HttpApiEndpoint } from "effect/http-api"
import { SqlClient, SqlError } from "effect/sql"
import type { AuditAction } from "#rpc/audit"
import { CurrentActor, CurrentEnvironment, type EnvironmentName } from "#rpc/auth"
import { Unavailable } from "#rpc/errors/codes"
import { newId, type ProjectId } from "#rpc/ids"
import { Operation } from "#rpc/operations"
import { AuditRepository } from "#sql/audit"
import { clientAddress } from "#server/platform/client-address"
import { sweepDaily } from "#server/platform/database"
import { Settings } from "#server/platform/settings/settings"

const keptDays = 400

/** Action, target and details of one change. */
export interface AuditEvent {
  readonly action: AuditAction
  readonly target: { readonly kind: string; readonly id: string }
  readonly details?: Readonly<Record<string, Schema.Json>>
}

/** An endpoint whose annotation names its change. */
export type AuditedEndpoint = Pick<HttpApiEndpoint.Top, "annotations" | "identifier">

/** Target and details of the change of an endpoint. */
export type AuditSubject = Omit<AuditEvent, "action">

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
     * The same for the change of an endpoint, whose annotation names the action. The entry concerns the
     * environment of the request.
     */
    readonly recordOperation: <A, E, R>(
      endpoint: AuditedEndpoint,
      change: Effect.Effect<A, E, R>,
      subjectOf: (changed: A) => AuditSubject | undefined
    ) => Effect.Effect<A, E, R | CurrentActor | CurrentEnvironment>
    /**
     * Runs an endpoint's change outside Postgres and writes its entry after success. A rejected change
     * gets no entry. When the outcome is unknown (`unavailable`, a defect, an interruption), the entry
     * has `outcome: "unknown"`.
     */
    readonly recordOperationAfter: <A, E, R>(
      endpoint: AuditedEndpoint,
      change: Effect.Effect<A, E, R>,
      subject: AuditSubject
    ) => Effect.Effect<A, E, R | CurrentActor | CurrentEnvironment>
  }
>()("server/features/audit/service/Audit") {
  static readonly layer = Layer.effect(
    Audit,
    Effect.gen(function* () {
      const repository = yield* AuditRepository
      const sql = yield* SqlClient.SqlClient
      const record = yield* makeRecord
      yield* sweepDaily("Audit entries", (now) =>
        repository.sweep(DateTime.subtract(now, { days: keptDays }))
      )
      const recordChange: Audit["Service"]["recordChange"] = (scope, change, eventOf) => {
        const both = Effect.tap(change, (changed) => {
          const event = eventOf(changed)
          return event === undefined ? Effect.void : record(scope, event)
        })
        return Effect.catchIf(sql.withTransaction(both), SqlError.isSqlError, Effect.die)
      }
      return Audit.of({
        record,
        recordChange,
        recordOperation: Effect.fnUntraced(function* (endpoint, change, subjectOf) {
          const action = yield* actionOf(endpoint)
          return yield* recordChange(yield* CurrentEnvironment, change, (changed) => {
            const subject = subjectOf(changed)
            return subject === undefined ? undefined : { ...subject, action }
          })
        }),
        recordOperationAfter: Effect.fnUntraced(function* (endpoint, change, subject) {
          const environment = yield* CurrentEnvironment
          const event = { ...subject, action: yield* actionOf(endpoint) }
          return yield* Effect.onExit(change, (exit) => {
            if (Exit.isSuccess(exit)) return record(environment, event)
            if (isRejected(exit.cause)) return Effect.void
            const details = { ...event.details, outcome: "unknown" }
            return record(environment, { ...event, details })
          })
        })
      })
    })
  )
}

/** The action that an endpoint declares. */
const actionOf = ({ annotations, identifier }: AuditedEndpoint): Effect.Effect<AuditAction> => {
  const { audit } = Context.get(annotations, Operation)
  return audit === undefined
    ? Effect.die(new Error(`The endpoint ${identifier} declares no audit action`))
    : Effect.succeed(audit)
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
    const request = Option.getOrUndefined(
      yield* Effect.serviceOption(HttpServerRequest.HttpServerRequest)
    )
    // A call of a function comes from no address.
    const hasAddress = request !== undefined && Option.isSome(request.remoteAddress)
    yield* repository.insert({
      id: yield* Effect.provideService(newId.auditEntry, SecureRandom.SecureRandom, random),
      at: yield* DateTime.now,
      projectId,
      env: name ?? null,
      actorKind: actor.kind,
      actorId: actor.id,
      actorName: actor.name,
      address: hasAddress ? clientAddress(request, trustedProxies) : null,
      action,
      targetKind: target.kind,
      targetId: target.id,
      details
    })
  })
})
