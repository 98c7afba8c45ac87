/**
 * Config over HTTP: the document and its versions for secret keys and developers, and the public
 * definitions for pages and apps.
 */
import { DateTime, Effect, Function, Layer, Option, type Schema } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiSchema } from "effect/http-api"
import { Api } from "#rpc/api"
import { CurrentActor, CurrentEnvironment } from "#rpc/auth"
import type { ConfigPushed } from "#rpc/config"
import { publicConfig } from "#rpc/config-document/definitions"
import { NotFound } from "#rpc/errors/codes"
import { config as configLimits, http as pages, throttles as limits } from "#rpc/limits"
import { ConfigRepository } from "#sql/config"
import { apiGroup } from "#server/platform/api-group"
import { matchesTag } from "#server/platform/entity-tags"
import { firstPageCursor } from "#server/platform/pages"
import { takeToken } from "#server/platform/throttle-guard"
import { Throttles } from "#server/platform/throttles"
import { Audit, type AuditEvent } from "../audit/service.ts"
import { duplicateNames } from "./duplicate-names.ts"
import { Configs, type CurrentConfig, etagOf } from "./service.ts"

/** Public definitions as JSON text, encoded once per config version. */
const definitionsText = Function.memoize(({ config, version }: CurrentConfig): string =>
  JSON.stringify(publicConfig(config, version))
)

const maxAgeSeconds = 60

/** The group `definitions`. */
export const DefinitionsHttp = apiGroup(
  Api,
  "definitions",
  Effect.fn(function* (handlers) {
    const configs = yield* Configs
    return handlers.handle(
      "read",
      Effect.fnUntraced(function* ({ headers: { "if-none-match": ifNoneMatch } }) {
        const { environmentId } = yield* CurrentEnvironment
        const current = yield* configs.current(environmentId)
        const headers = {
          etag: etagOf(current.version),
          "cache-control": `max-age=${maxAgeSeconds}`,
          // The response depends on the key, and pages of other origins get none.
          vary: "Origin, X-Svc-Key"
        }
        if (ifNoneMatch !== undefined && matchesTag(ifNoneMatch, etagOf(current.version))) {
          return HttpServerResponse.empty({ status: 304, headers })
        }
        return HttpServerResponse.text(definitionsText(current), {
          headers,
          contentType: "application/json"
        })
      })
    )
  })
)

/** Maximum number of changed paths that the audit entry of a push lists. */
const loggedPaths = 32

interface PushRequest {
  readonly headers: { readonly "if-match"?: string }
  readonly payload: Schema.Json
  readonly request: HttpServerRequest.HttpServerRequest
}

interface VersionsRequest {
  readonly query: { readonly cursor?: number; readonly limit?: number }
}

interface VersionRequest {
  readonly params: { readonly version: number }
}

/** The audit event of a push: the changed paths without values; none when nothing changed. */
export const pushEvent = ({ changed, configVersion }: ConfigPushed): AuditEvent | undefined =>
  changed.length === 0
    ? undefined
    : {
        action: "config.push",
        target: { kind: "config", id: `${configVersion}` },
        details: { changed: changed.slice(0, loggedPaths), changes: changed.length }
      }

const makeHandlers = Effect.gen(function* () {
  const audit = yield* Audit
  const configs = yield* Configs
  const repository = yield* ConfigRepository
  const throttles = yield* Throttles
  return {
    read: Effect.fnUntraced(function* () {
      const { environmentId } = yield* CurrentEnvironment
      const { document, version } = yield* configs.current(environmentId)
      return HttpApiSchema.withHeaders({ body: document, headers: { etag: etagOf(version) } })
    }),
    push: Effect.fnUntraced(function* ({ headers, payload, request }: PushRequest) {
      const environment = yield* CurrentEnvironment
      const { environmentId, name } = environment
      const { id: pushedBy } = yield* CurrentActor
      // The validation of a large document blocks the process for a moment.
      yield* takeToken(throttles, limits.configPushes, `config-push:${environmentId}`)
      const ifMatch = headers["if-match"]
      const text = yield* Effect.orDie(request.text)
      const push = configs.push({
        environmentId,
        environment: name,
        document: payload,
        duplicates: duplicateNames(text, configLimits.issuesMax),
        pushedBy,
        ifMatch
      })
      const pushed = yield* audit.recordChange(environment, push, pushEvent)
      const warnings = [...pushed.warnings, ...(yield* configs.warnings(environmentId))]
      return { ...pushed, warnings }
    }),
    versions: Effect.fnUntraced(function* ({ query }: VersionsRequest) {
      const { environmentId } = yield* CurrentEnvironment
      const { cursor = firstPageCursor, limit = pages.pageDefault } = query
      const page = yield* repository.history({ environmentId, before: cursor, limit })
      const versions = page.map(({ createdAt, pushedBy, version }) => ({
        configVersion: version,
        pushedBy,
        createdAt: DateTime.formatIso(createdAt)
      }))
      const last = page.at(-1)?.version ?? 1
      return { versions, nextCursor: last > 1 ? `${last}` : null }
    }),
    version: Effect.fnUntraced(function* ({ params: { version } }: VersionRequest) {
      const { environmentId } = yield* CurrentEnvironment
      const found = yield* repository.version({ environmentId, version })
      return Option.isSome(found) ? found.value.document : yield* new NotFound()
    })
  }
})

/** The groups `config` and `projectConfig`: the current document, pushes and past versions. */
export const ConfigHttp = Layer.mergeAll(
  apiGroup(Api, "config", (handlers) => Effect.map(makeHandlers, (all) => handlers.handleAll(all))),
  apiGroup(Api, "projectConfig", (handlers) =>
    Effect.map(makeHandlers, (all) => handlers.handleAll(all))
  )
)
