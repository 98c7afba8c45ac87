/**
 * The audit log of a project (spec section 4.9, decisions 3.13.6): every change that a developer or a
 * secret key made, with who, what, when and from where. It is append-only and kept for 400 days.
 *
 * Timestamps are ISO 8601 UTC.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { EnvironmentName } from "./auth.ts"
import { http } from "./limits.ts"
import { memberParams, underMember } from "./mounts.ts"

export const ActorKind = Schema.Literals(["developer", "key", "system"])

/** What can have been done. A client must take actions that it does not know, too. */
export type AuditAction =
  | "appeal.resolve"
  | "channel.delete"
  | "channel.moderate"
  | "channel.put"
  | "config.push"
  | "key.create"
  | "key.revoke"
  | "player.age"
  | "player.ban"
  | "player.delete"
  | "player.export"
  | "player.unban"
  | "project.create"
  | "project.delete"
  | "project.rename"
  | "provider.delete"
  | "provider.put"
  | "webhookSecret.rotate"

/** A key is named by its first characters, a developer by name or email. */
export const AuditActor = Schema.Struct({
  kind: ActorKind,
  id: Schema.String,
  name: Schema.String
})

/** One change; `env` is null for what concerns the whole project. */
export const AuditEntry = Schema.Struct({
  id: Schema.String,
  at: Schema.String,
  env: Schema.NullOr(EnvironmentName),
  actor: AuditActor,
  /** The address that the request came from; of IPv6 the network. */
  address: Schema.NullOr(Schema.String),
  /** For instance `player.ban`. */
  action: Schema.String,
  target: Schema.Struct({ kind: Schema.String, id: Schema.String }),
  /** What else is worth knowing, before and after where that is small; never a secret. */
  details: Schema.Record(Schema.String, Schema.Json)
})
export type AuditEntry = typeof AuditEntry.Type

const Limit = Schema.FiniteFromString.check(
  Schema.isInt(),
  Schema.isBetween({ minimum: 1, maximum: http.pageMax })
)

/** No database text holds a NUL, so nothing has such a name. */
const Exactly = Schema.optionalKey(
  Schema.String.check(
    Schema.isBetweenLength(1, 256),
    Schema.isPattern(/^\P{Cc}*$/u, { message: "Expected no control characters" })
  )
)

/** `/v1/projects/:projectId/audit`, newest first; `before` is the `nextBefore` of the page before. */
export class AuditApi extends underMember(
  HttpApiGroup.make("audit").add(
    HttpApiEndpoint.get("list", "/audit", {
      params: memberParams,
      query: {
        limit: Schema.optionalKey(Limit),
        before: Exactly,
        env: Schema.optionalKey(EnvironmentName),
        /** These three: exactly this action, this actor's id, this target's id. */
        action: Exactly,
        actor: Exactly,
        target: Exactly
      },
      success: Schema.Struct({
        entries: Schema.Array(AuditEntry),
        nextBefore: Schema.NullOr(Schema.String)
      })
    }).annotate(OpenApi.Summary, "Who changed what, newest first")
  )
) {}
