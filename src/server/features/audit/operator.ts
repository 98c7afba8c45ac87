/** Writes the audit entry of an act of the operator. It commits with the change in its transaction. */
import { DateTime, Effect } from "effect"
import type { EnvironmentName } from "#rpc/auth"
import { newId, type ProjectId } from "#rpc/ids"
import { AuditRepository, wholeDeployment } from "#sql/audit"
import type { AuditEvent } from "./service.ts"

/** Without a scope the act concerns the whole deployment. */
export const recordOperatorAct = Effect.fnUntraced(function* (
  { action, details = {}, target }: AuditEvent,
  scope: {
    readonly projectId: ProjectId | typeof wholeDeployment
    readonly name?: EnvironmentName
  } = { projectId: wholeDeployment }
) {
  const audit = yield* AuditRepository
  yield* audit.insert({
    id: yield* newId.auditEntry,
    at: yield* DateTime.now,
    projectId: scope.projectId,
    env: scope.name ?? null,
    actorKind: "system",
    actorId: "operator",
    actorName: "operator",
    address: null,
    action,
    targetKind: target.kind,
    targetId: target.id,
    details
  })
})
