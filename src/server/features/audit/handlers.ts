/** Reads of a project's audit log: `GET /v1/projects/:projectId/audit`. */
import { DateTime, Effect } from "effect"
import { Api } from "#rpc/api"
import type { AuditEntry } from "#rpc/audit"
import { CurrentProject } from "#rpc/auth"
import { http } from "#rpc/limits"
import { type AuditRow, AuditRepository } from "#sql/audit"
import { apiGroup } from "#server/platform/api-group"
import { pageOf } from "#server/platform/pages"

const toEntry = ({ action, address, at, details, env, id, ...row }: AuditRow): AuditEntry => ({
  id,
  at: DateTime.formatIso(at),
  env,
  actor: { kind: row.actorKind, id: row.actorId, name: row.actorName },
  address,
  action,
  target: { kind: row.targetKind, id: row.targetId },
  details
})

/** The group `audit`. */
export const AuditHttp = apiGroup(
  Api,
  "audit",
  Effect.fn(function* (handlers) {
    const repository = yield* AuditRepository
    return handlers.handleAll({
      list: Effect.fnUntraced(function* ({ query }) {
        const { projectId } = yield* CurrentProject
        const { action, actor, before, env, limit = http.pageDefault, target } = query
        const found = yield* repository.page({
          projectId,
          before: before ?? null,
          env: env ?? null,
          action: action ?? null,
          actor: actor ?? null,
          target: target ?? null,
          limit: limit + 1
        })
        const { nextCursor, rows } = pageOf(found, limit, ({ id }) => id)
        return { entries: rows.map(toEntry), nextBefore: nextCursor }
      })
    })
  })
)
