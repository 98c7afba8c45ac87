/**
 * The config of environments (spec sections 2.2 and 4.7, decisions 3.5): versions and their history.
 * A push validates the whole document first and changes nothing when it has a problem; pushes to one
 * environment are serialized, so none is lost. Reading is a cache hit on a warm node, and a push is
 * in force on all nodes within a second.
 */
import {
  Cache,
  Context,
  DateTime,
  Effect,
  Layer,
  Option,
  PubSub,
  Record,
  Schema,
  Stream
} from "effect"
import { SqlClient } from "effect/sql"
import type { ConfigPushed } from "#rpc/config"
import { changedPaths } from "#rpc/config-document/changes"
import { decodeConfig, type EnvironmentConfig } from "#rpc/config-document/document"
import type { FeatureName } from "#rpc/config-document/features"
import { configWarnings } from "#rpc/config-document/warnings"
import {
  ConfigConflict,
  FeatureUnavailable,
  type InvalidConfig,
  PayloadTooLarge
} from "#rpc/errors/codes"
import { EnvironmentId } from "#rpc/ids"
import { caches, config as limits } from "#rpc/limits"
import { ConfigRepository } from "#sql/config"
import { Invalidation } from "#server/platform/invalidation"
import { Settings } from "#server/platform/settings/settings"

/** The config of an environment as it is in force; version 0 is the empty one of a new environment. */
export interface CurrentConfig {
  readonly version: number
  readonly config: EnvironmentConfig
  readonly document: Schema.Json
}

/** A document to put in force. */
export interface ConfigPush {
  readonly environmentId: EnvironmentId
  readonly document: Schema.Json
  /** Who pushes: the id of a key or a developer, or `system`. */
  readonly pushedBy: string
  /** The `If-Match` header: push only onto one of these versions. */
  readonly ifMatch?: string | undefined
}

type PushError = InvalidConfig | FeatureUnavailable | ConfigConflict | PayloadTooLarge

/** The second line of defence behind the invalidation: nothing is believed for longer. */
const trust = "60 seconds"

/** Changes that wait for a slow consumer; beyond it the oldest are lost to it. */
const changesCapacity = 1024

/** The entity tag of a version. */
export const etagOf = (version: number): string => `"${version}"`

/** Whether a version is among the entity tags of an `If-Match` or `If-None-Match` header. */
export const matchesVersion = (tags: string, version: number): boolean =>
  tags.split(",").some((tag) => {
    const bare = tag.trim().replace(/^W\//, "")
    return bare === "*" || bare === etagOf(version)
  })

/** The configs of all environments. */
export class Configs extends Context.Service<
  Configs,
  {
    readonly current: (environmentId: EnvironmentId) => Effect.Effect<CurrentConfig>
    readonly push: (push: ConfigPush) => Effect.Effect<ConfigPushed, PushError>
    /** Environments whose config may have changed, on whichever node; `current` is new by then. */
    readonly changes: Stream.Stream<EnvironmentId>
  }
>()("server/features/config/service/Configs") {
  static readonly layer = Layer.effect(
    Configs,
    Effect.gen(function* () {
      const { cached, changes } = yield* currentConfigs
      const push = yield* makePush
      const sql = yield* SqlClient.SqlClient
      return Configs.of({
        current: (environmentId) => Cache.get(cached, environmentId),
        push: (options) =>
          Effect.tap(push(options), () =>
            sql.afterCommit(Cache.invalidate(cached, options.environmentId))
          ),
        changes: Stream.fromPubSub(changes)
      })
    })
  )
}

const isEnvironmentId = Schema.is(EnvironmentId)

/** The configs in force, and the environments whose config changes. */
const currentConfigs = Effect.gen(function* () {
  const rows = yield* ConfigRepository
  const invalidation = yield* Invalidation
  const changes = yield* PubSub.sliding<EnvironmentId>(changesCapacity)
  const cached = yield* Cache.make({
    capacity: caches.environments,
    timeToLive: trust,
    lookup: Effect.fnUntraced(function* (environmentId: EnvironmentId) {
      const { document, version } = yield* newest(rows, environmentId)
      // Only what decoded is ever stored.
      const config = yield* Effect.orDie(Effect.fromResult(decodeConfig(document)))
      return { version, config, document } satisfies CurrentConfig
    })
  })
  yield* invalidation.subscribe(
    Effect.fnUntraced(function* ({ id, kind }) {
      if (kind !== "config" && kind !== "everything") return
      const known = Array.from(yield* Cache.keys(cached))
      // A push on this node has dropped its own entry already: it is news all the same.
      const named = isEnvironmentId(id) ? [id] : []
      const changed = kind === "everything" ? known : named
      yield* Effect.forEach(changed, (it) => Cache.invalidate(cached, it), { discard: true })
      yield* PubSub.publishAll(changes, changed)
    })
  )
  return { cached, changes }
})

const newest = (rows: ConfigRepository["Service"], environmentId: string) =>
  Effect.map(
    rows.newest(environmentId),
    Option.getOrElse(() => ({ version: 0, document: {} }))
  )

/** The features that a config turns on although this deployment does not offer them. */
const notOffered = (
  { features }: EnvironmentConfig,
  offered: ReadonlySet<FeatureName>
): ReadonlyArray<FeatureName> =>
  Record.keys(features).filter((name) => features[name] && !offered.has(name))

const makePush = Effect.gen(function* () {
  const rows = yield* ConfigRepository
  const invalidation = yield* Invalidation
  const settings = yield* Settings
  const sql = yield* SqlClient.SqlClient

  const store = Effect.fnUntraced(function* (push: ConfigPush) {
    const { document, environmentId, ifMatch, pushedBy } = push
    yield* rows.serialize(environmentId)
    const before = yield* newest(rows, environmentId)
    if (ifMatch !== undefined && !matchesVersion(ifMatch, before.version)) {
      return yield* new ConfigConflict({ details: { currentVersion: before.version } })
    }
    const changed = changedPaths(before.document, document)
    if (changed.length === 0) return { configVersion: before.version, changed }
    const version = before.version + 1
    const createdAt = yield* DateTime.now
    yield* rows.insert({ environmentId, version, document, pushedBy, createdAt })
    yield* invalidation.publish({ kind: "config", id: environmentId })
    return { configVersion: version, changed }
  })

  return Effect.fn("Configs.push")(function* (push: ConfigPush) {
    const { document } = push
    if (Buffer.byteLength(JSON.stringify(document)) > limits.documentMaxBytes) {
      return yield* new PayloadTooLarge({ details: { limit: limits.documentMaxBytes } })
    }
    const config = yield* Effect.fromResult(decodeConfig(document))
    const features = notOffered(config, settings.features)
    if (features.length > 0) return yield* new FeatureUnavailable({ details: { features } })
    const stored = yield* Effect.catchTag(sql.withTransaction(store(push)), "SqlError", Effect.die)
    return { ...stored, warnings: configWarnings(config, document) }
  })
})
