/**
 * What an environment shows of its config: its public part to pages and apps (spec section 4.3,
 * decisions 3.5.4), its features to servers and the CLI (spec section 4.7, decisions 3.5.5).
 */
import { DateTime, Effect, Function, Layer, Option, type Schema } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder, HttpApiSchema } from "effect/http-api"
import { Api } from "#rpc/api"
import { CurrentActor, CurrentEnvironment } from "#rpc/auth"
import type { ConfigPushed, FeatureState } from "#rpc/config"
import { publicConfig } from "#rpc/config-document/definitions"
import { featureTable } from "#rpc/config-document/features"
import { NotFound } from "#rpc/errors/codes"
import { http as pages } from "#rpc/limits"
import { ConfigRepository } from "#sql/config"
import { Settings } from "#server/platform/settings/settings"
import { Audit, type AuditEvent } from "../audit/service.ts"
import { Configs, type CurrentConfig, etagOf, matchesVersion } from "./service.ts"

/** The definitions of a config as they are answered, made once for each version. */
const definitionsText = Function.memoize(({ config, version }: CurrentConfig): string =>
  JSON.stringify(publicConfig(config, version))
)

const maxAgeSeconds = 60

const DefinitionsHttp = HttpApiBuilder.group(
  Api,
  "definitions",
  Effect.fn(function* (handlers) {
    const configs = yield* Configs
    return handlers.handle(
      "read",
      Effect.fnUntraced(function* ({ headers: { "if-none-match": known } }) {
        const { environmentId } = yield* CurrentEnvironment
        const current = yield* configs.current(environmentId)
        const headers = {
          etag: etagOf(current.version),
          "cache-control": `max-age=${maxAgeSeconds}`,
          // The same address is another document under another key, and none to some pages.
          vary: "Origin, X-Svc-Key"
        }
        if (known !== undefined && matchesVersion(known, current.version)) {
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

/** Turned on by an endpoint of theirs, which this service does not have yet. */
const functions: FeatureState = {
  key: "functions",
  title: "Functions",
  configPath: null,
  source: "endpoint",
  enabled: false,
  offered: false
}

const makeFeatures = Effect.gen(function* () {
  const configs = yield* Configs
  const settings = yield* Settings
  return {
    list: Effect.fnUntraced(function* () {
      const { environmentId } = yield* CurrentEnvironment
      const { features } = (yield* configs.current(environmentId)).config
      const states = Object.values(featureTable).map((feature): FeatureState => {
        const offered = settings.features.has(feature.key)
        const enabled = offered && features[feature.key]
        return { ...feature, source: "config", enabled, offered }
      })
      return { features: [...states, functions] }
    })
  }
})

/** The groups `definitions`, `features` and `projectFeatures`. */
export const PublicConfigHttp = Layer.mergeAll(
  DefinitionsHttp,
  HttpApiBuilder.group(Api, "features", (handlers) =>
    Effect.map(makeFeatures, (all) => handlers.handleAll(all))
  ),
  HttpApiBuilder.group(Api, "projectFeatures", (handlers) =>
    Effect.map(makeFeatures, (all) => handlers.handleAll(all))
  )
)

/** So many of the paths that a push changed are in the audit log. */
const loggedPaths = 32

/** Above every version. */
const versionMax = 2 ** 31 - 1

interface PushRequest {
  readonly headers: { readonly "if-match"?: string }
  readonly payload: Schema.Json
}

interface VersionsRequest {
  readonly query: { readonly cursor?: number; readonly limit?: number }
}

interface VersionRequest {
  readonly params: { readonly version: number }
}

/** A push as the audit log has it: which paths it changed, not to what. */
const pushed = ({ changed, configVersion }: ConfigPushed): AuditEvent | undefined =>
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
  const rows = yield* ConfigRepository
  return {
    read: Effect.fnUntraced(function* () {
      const { environmentId } = yield* CurrentEnvironment
      const { document, version } = yield* configs.current(environmentId)
      return HttpApiSchema.withHeaders({ body: document, headers: { etag: etagOf(version) } })
    }),
    push: Effect.fnUntraced(function* ({ headers, payload }: PushRequest) {
      const environment = yield* CurrentEnvironment
      const { environmentId } = environment
      const { id: pushedBy } = yield* CurrentActor
      const ifMatch = headers["if-match"]
      const push = configs.push({ environmentId, document: payload, pushedBy, ifMatch })
      return yield* audit.recordChange(environment, push, pushed)
    }),
    versions: Effect.fnUntraced(function* ({ query }: VersionsRequest) {
      const { environmentId } = yield* CurrentEnvironment
      const { cursor = versionMax, limit = pages.pageDefault } = query
      const page = yield* rows.history({ environmentId, before: cursor, limit })
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
      const found = yield* rows.version({ environmentId, version })
      return Option.isSome(found) ? found.value.document : yield* new NotFound()
    })
  }
})

/** The document in force, pushes, and their history: `config` and `projectConfig`. */
export const ConfigHttp = Layer.mergeAll(
  HttpApiBuilder.group(Api, "config", (handlers) =>
    Effect.map(makeHandlers, (all) => handlers.handleAll(all))
  ),
  HttpApiBuilder.group(Api, "projectConfig", (handlers) =>
    Effect.map(makeHandlers, (all) => handlers.handleAll(all))
  )
)
