/** Reads of a project's audit log: `GET /v1/projects/:projectId/audit`. */
import { DateTime, Effect } from "effect"
import { Api } from "#rpc/api"
import type { AuditEntry } from "#rpc/audit"
import { CurrentProject } from "#rpc/auth"
import { http as pages } from "#rpc/limits"
import { type AuditRow, AuditRepository } from "#sql/audit"
import { apiGroup } from "#server/platform/api-group"

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
        const { action, actor, before, env, limit = pages.pageDefault, target } = query
        const page = yield* repository.page({
          projectId,
          before: before ?? null,
          env: env ?? null,
          action: action ?? null,
          actor: actor ?? null,
          target: target ?? null,
          limit: limit + 1
        })
        const entries = page.slice(0, limit).map(toEntry)
        const last = page.length > limit ? entries.at(-1) : undefined
        return { entries, nextBefore: last?.id ?? null }
      })
    })
  })
)
