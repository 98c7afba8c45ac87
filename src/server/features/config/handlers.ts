/**
 * Config over HTTP: the document and its versions for secret keys and developers, and the public
 * definitions for pages and apps.
 */
import { DateTime, Effect, Function, Option } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiSchema } from "effect/http-api"
import { Api } from "#rpc/api"
import { CurrentActor, CurrentEnvironment } from "#rpc/auth"
import type { ConfigPushed } from "#rpc/config"
import { publicConfig } from "#rpc/config-document/definitions"
import { diffLines } from "#rpc/config-document/diff"
import { configLimits } from "#rpc/config-document/limits"
import { NotFound } from "#rpc/errors/codes"
import { InProcessApi } from "#rpc/in-process"
import { http } from "#rpc/limits"
import { ConfigRepository } from "#sql/config"
import { apiGroup, mounted, type RequestOf } from "#server/platform/api-group"
import { matchesTag } from "#server/platform/entity-tags"
import { firstPageCursor } from "#server/platform/pages"
import { Audit, type AuditedEndpoint, type AuditSubject } from "../audit/service.ts"
import { duplicateNames } from "./duplicate-names.ts"
import { type ConfigPush, Configs, type CurrentConfig, etagOf } from "./service.ts"

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

/** The audit subject of a push: the changed paths without values; none when nothing changed. */
const subjectOf = ({ changed, configVersion }: ConfigPushed): AuditSubject | undefined =>
  changed.length === 0
    ? undefined
    : {
        target: { kind: "config", id: `${configVersion}` },
        details: { changed: changed.slice(0, loggedPaths), changes: changed.length }
      }

/** Pushes a document for the caller, and adds the warnings beyond the document. */
const makePush = Effect.gen(function* () {
  const audit = yield* Audit
  const configs = yield* Configs
  return Effect.fnUntraced(function* (
    endpoint: AuditedEndpoint,
    given: Pick<ConfigPush, "document" | "duplicates" | "ifMatch">
  ) {
    const { environmentId, name: environment } = yield* CurrentEnvironment
    const { id: pushedBy } = yield* CurrentActor
    const push = configs.push({ ...given, environmentId, environment, pushedBy })
    const pushed = yield* audit.recordOperation(endpoint, push, subjectOf)
    return {
      ...pushed,
      warnings: [...pushed.warnings, ...(yield* configs.warnings(environmentId))]
    }
  })
})

const makeDocuments = Effect.gen(function* () {
  const configs = yield* Configs
  const push = yield* makePush
  const repository = yield* ConfigRepository
  return {
    read: Effect.fnUntraced(function* () {
      const { environmentId } = yield* CurrentEnvironment
      const { document, version } = yield* configs.current(environmentId)
      return HttpApiSchema.withHeaders({ body: document, headers: { etag: etagOf(version) } })
    }),
    push: Effect.fnUntraced(function* ({
      endpoint,
      headers: { "if-match": ifMatch },
      payload: document,
      request
    }: RequestOf<"config", "push">) {
      const text = yield* Effect.orDie(request.text)
      const duplicates = duplicateNames(text, configLimits.issuesMax)
      return yield* push(endpoint, { document, duplicates, ifMatch })
    }),
    versions: Effect.fnUntraced(function* ({ query }: RequestOf<"config", "versions">) {
      const { environmentId } = yield* CurrentEnvironment
      const { cursor = firstPageCursor, limit = http.pageDefault } = query
      const page = yield* repository.history({ environmentId, before: cursor, limit })
      const versions = page.map(({ createdAt, pushedBy, version }) => ({
        configVersion: version,
        pushedBy,
        createdAt: DateTime.formatIso(createdAt)
      }))
      const last = page.at(-1)?.version ?? 1
      return { versions, nextCursor: last > 1 ? `${last}` : null }
    }),
    version: Effect.fnUntraced(function* ({ params }: RequestOf<"config", "version">) {
      const { environmentId } = yield* CurrentEnvironment
      const found = yield* repository.version({ environmentId, version: params.version })
      return Option.isSome(found) ? found.value.document : yield* new NotFound()
    })
  }
})

/** The document with its version, for agents. */
const ExchangeGroup = apiGroup(
  InProcessApi,
  "configExchange",
  Effect.fn(function* (handlers) {
    const configs = yield* Configs
    const push = yield* makePush
    return handlers.handleAll({
      read: Effect.fnUntraced(function* () {
        const { environmentId } = yield* CurrentEnvironment
        const { document, version } = yield* configs.current(environmentId)
        return { configVersion: version, document }
      }),
      diff: Effect.fnUntraced(function* ({ payload: { document } }) {
        const { environmentId, name: environment } = yield* CurrentEnvironment
        const warnings = yield* configs.validate({ document, environment })
        const current = yield* configs.current(environmentId)
        const before = { name: `version ${current.version}`, document: current.document }
        const diff = diffLines(before, { name: "new", document })
        return { configVersion: current.version, diff: diff.join("\n"), warnings }
      }),
      push: ({ endpoint, payload: { configVersion, document } }) =>
        push(endpoint, { document, ifMatch: etagOf(configVersion) })
    })
  })
)

/** The groups `config`, `projectConfig` and `configExchange`. */
export const ConfigHttp = mounted(makeDocuments, (documents) => [
  apiGroup(Api, "config", (handlers) => handlers.handleAll(documents)),
  apiGroup(Api, "projectConfig", (handlers) => handlers.handleAll(documents)),
  ExchangeGroup
])
