/** Writes the audit entry of an act on the whole deployment. It commits with the change in its transaction. */
import { DateTime, Effect } from "effect"
import type { AuditAction } from "#rpc/audit"
import { newId } from "#rpc/ids"
import { AuditRepository, wholeDeployment } from "#sql/audit"

export const record = Effect.fnUntraced(function* (
  action: AuditAction,
  target: { readonly kind: string; readonly id: string },
  details: Readonly<Record<string, string | number>> = {}
) {
  const audit = yield* AuditRepository
  yield* audit.insert({
    id: yield* newId.auditEntry,
    at: yield* DateTime.now,
    projectId: wholeDeployment,
    env: null,
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
