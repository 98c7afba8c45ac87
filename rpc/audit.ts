/**
 * Audit log of a project: every change by a developer or a secret key, with actor, action, time and
 * address. It is append-only and keeps entries for 400 days.
 *
 * Timestamps are ISO 8601 UTC.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, OpenApi } from "effect/http-api"
import { EnvironmentName, OpenToDeleted } from "./auth.ts"
import { feature, group } from "./feature.ts"
import { memberParams, underMember } from "./mounts.ts"
import { PageLimit } from "./pages.ts"
import { Timestamp } from "./text.ts"

export const ActorKind = Schema.Literals(["developer", "key", "system"])

/**
 * An audited action: the kind of its target, and what happens to it. An endpoint declares its own in
 * `Operation`. A client must tolerate unknown ones.
 */
export type AuditAction = `${string}.${string}`

/** The actor of a change; `name` is a key's prefix, or a developer's name or email. */
export const AuditActor = Schema.Struct({
  kind: ActorKind,
  id: Schema.String,
  name: Schema.String
}).annotate({
  identifier: "AuditActor",
  description: "Who made a change. `name` is a key's prefix, or a developer's name or email."
})

/** One change; `env` is null for a change of the whole project. */
export const AuditEntry = Schema.Struct({
  id: Schema.String,
  at: Timestamp,
  env: Schema.NullOr(EnvironmentName),
  actor: AuditActor,
  /** The client address of the request; for IPv6 the network prefix. */
  address: Schema.NullOr(Schema.String),
  /** Action, for instance `player.ban`. */
  action: Schema.String,
  target: Schema.Struct({ kind: Schema.String, id: Schema.String }),
  /** Details of the action, with small values before and after; never a secret. */
  details: Schema.Record(Schema.String, Schema.Json)
}).annotate({
  identifier: "AuditEntry",
  description: "One change in the project. `env` is null for a change of the whole project."
})
export type AuditEntry = typeof AuditEntry.Type

/** An exact-match filter. No stored value contains control characters, such as NUL. */
const ExactMatch = Schema.optionalKey(
  Schema.String.check(
    Schema.isBetweenLength(1, 256),
    Schema.isPattern(/^\P{Cc}*$/u, { message: "Expected no control characters" })
  )
)

/** Cursor of a page: the id of the last entry. */
const AuditCursor = Schema.String.check(
  Schema.isPattern(/^aud_[0-9A-HJKMNP-TV-Z]{26}$/, {
    message: "Expected the nextBefore of a previous response"
  })
)

/**
 * `/v1/projects/:projectId/audit`, newest first; `before` is the `nextBefore` of the page before. Members
 * of a deleted project read it until the project's data is removed.
 */
export class AuditApi extends underMember(
  group("audit", "project", "Audit log", "Who changed what in the project.").add(
    HttpApiEndpoint.get("list", "/audit", {
      params: memberParams,
      query: {
        limit: Schema.optionalKey(PageLimit),
        before: Schema.optionalKey(AuditCursor),
        env: Schema.optionalKey(EnvironmentName),
        /** Exact-match filters: the action, the actor's id and the target's id. */
        action: ExactMatch,
        actor: ExactMatch,
        target: ExactMatch
      },
      success: Schema.Struct({
        entries: Schema.Array(AuditEntry),
        nextBefore: Schema.NullOr(Schema.String)
      }).annotate({
        identifier: "AuditPage",
        description: "A page of the audit log, newest first."
      })
    })
      .annotate(OpenApi.Summary, "List the entries of the audit log, newest first")
      .annotate(OpenToDeleted, true)
  )
) {}

export const auditFeature = feature({
  word: "audit",
  groups: [AuditApi]
})
