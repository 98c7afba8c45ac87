/**
 * Versioned configs of environments. A push validates the whole document first and stores nothing when
 * it has an issue. A row lock serializes pushes to one environment, so each gets its own version. Each
 * node caches the current config; a push takes effect on all nodes within a second.
 */
import {
  Cache,
  Context,
  DateTime,
  Effect,
  Layer,
  Option,
  Predicate,
  PubSub,
  Record,
  Schema,
  Stream
} from "effect"
import { SqlClient } from "effect/sql"
import type { EnvironmentName } from "#rpc/auth"
import type { ConfigPushed } from "#rpc/config"
import { changedPaths } from "#rpc/config-document/changes"
import {
  decodeConfig,
  decodeStoredConfig,
  type EnvironmentConfig,
  invalidConfig
} from "#rpc/config-document/document"
import { type FeatureErrors, featureErrors } from "#rpc/config-document/feature-errors"
import { type FeatureName, featureTable } from "#rpc/config-document/features"
import { configLimits } from "#rpc/config-document/limits"
import { memberPath } from "#rpc/config-document/paths"
import { configWarnings } from "#rpc/config-document/warnings"
import {
  ConfigConflict,
  FeatureUnavailable,
  type InvalidConfig,
  type Issue,
  PayloadTooLarge
} from "#rpc/errors/codes"
import { EnvironmentId } from "#rpc/ids"
import { ConfigRepository } from "#sql/config"
import { matchesTag } from "#server/platform/entity-tags"
import { Invalidation } from "#server/platform/invalidation"
import { makeValueCache } from "#server/platform/value-cache"
import { Settings } from "#server/platform/settings/settings"

/** The current config of an environment. Version 0 is the empty config of a new environment. */
export interface CurrentConfig {
  readonly version: number
  /** Config with the features that the environment can use: enabled, and offered by the deployment. */
  readonly config: EnvironmentConfig
  /** Why the environment cannot use the other features. */
  readonly featureErrors: FeatureErrors
  readonly document: Schema.Json
  /** Whether the operator has suspended voice. */
  readonly voiceSuspended: boolean
}

/** A config document to validate and store as the next version. */
export interface ConfigPush {
  readonly environmentId: EnvironmentId
  /** Name of the environment. Some rules hold in production only. */
  readonly environment: EnvironmentName
  readonly document: Schema.Json
  /** Issues of the document's text: duplicate names in one object. */
  readonly duplicates?: ReadonlyArray<Issue>
  /** Id of a key or a developer, or `system`. */
  readonly pushedBy: string
  /** `If-Match` header. The push fails unless one of these versions is current. */
  readonly ifMatch?: string | undefined
}

type ValidationError = InvalidConfig | FeatureUnavailable | PayloadTooLarge
type PushError = ConfigConflict | ValidationError

/** Bounds how long a node uses a stale config when an invalidation message is lost. */
const cacheTtl = "60 seconds"

/**
 * Bound of the queue for a slow consumer of `changes`. Beyond it the queue drops the oldest changes.
 */
const changesCapacity = 1024

/** The entity tag of a version. */
export const etagOf = (version: number): string => `"${version}"`

/**
 * Check of a feature on the current config. Returns an issue for each value that the feature cannot
 * use.
 */
export type ConfigCheck = (
  environmentId: EnvironmentId,
  config: EnvironmentConfig
) => Effect.Effect<ReadonlyArray<Issue>>

/** Reads and pushes the configs of all environments. */
export class Configs extends Context.Service<
  Configs,
  {
    readonly current: (environmentId: EnvironmentId) => Effect.Effect<CurrentConfig>
    readonly push: (push: ConfigPush) => Effect.Effect<ConfigPushed, PushError>
    /** Validates a document as a push does, and stores nothing. Returns the warnings of the push. */
    readonly validate: (
      document: Pick<ConfigPush, "document" | "duplicates" | "environment">
    ) => Effect.Effect<ReadonlyArray<Issue>, ValidationError>
    /** Returns warnings beyond the document itself, for example about files that it names. */
    readonly warnings: (environmentId: EnvironmentId) => Effect.Effect<ReadonlyArray<Issue>>
    /** Adds a check to `warnings`. The feature that resolves the names in the config supplies it. */
    readonly addCheck: (check: ConfigCheck) => Effect.Effect<void>
    /**
     * Stream of environments whose config may have changed on any node; `current` already returns the
     * new one.
     */
    readonly changes: Stream.Stream<EnvironmentId>
  }
>()("server/features/config/service/Configs") {
  static readonly layer = Layer.effect(
    Configs,
    Effect.gen(function* () {
      const { cached, changes } = yield* makeConfigCache((yield* Settings).features)
      const { push, validate } = yield* makePush
      const sql = yield* SqlClient.SqlClient
      const checks: Array<ConfigCheck> = []
      return Configs.of({
        current: (environmentId) => Cache.get(cached, environmentId),
        warnings: Effect.fnUntraced(function* (environmentId) {
          const { config } = yield* Cache.get(cached, environmentId)
          const found = yield* Effect.forEach(checks, (check) => check(environmentId, config))
          return found.flat()
        }),
        validate,
        addCheck: (check) => Effect.sync(() => void checks.push(check)),
        push: (options) =>
          Effect.tap(push(options), () =>
            sql.afterCommit(Cache.invalidate(cached, options.environmentId))
          ),
        changes: Stream.fromPubSub(changes)
      })
    })
  )
}

/** Fails unless the environment can use the feature. */
export const requireFeature = Effect.fnUntraced(function* (
  environmentId: EnvironmentId,
  feature: FeatureName
) {
  const configs = yield* Configs
  const error = (yield* configs.current(environmentId)).featureErrors.get(feature)
  if (error !== undefined) return yield* error
})

const isEnvironmentId = Schema.is(EnvironmentId)

/** Per-node cache of current configs, and the stream of changed environments. */
export const makeConfigCache = Effect.fnUntraced(function* (offered: ReadonlySet<FeatureName>) {
  const repository = yield* ConfigRepository
  const invalidation = yield* Invalidation
  const changes = yield* PubSub.sliding<EnvironmentId>(changesCapacity)
  const cached = yield* makeValueCache({
    capacity: 1000,
    timeToLive: cacheTtl,
    lookup: Effect.fnUntraced(function* (environmentId: EnvironmentId) {
      const { document, version, voiceSuspended } = yield* newest(repository, environmentId)
      // A stored document has been validated by its push, so a decoding error is a defect.
      const stored = yield* Effect.orDie(decodeStoredConfig(document))
      const errors = featureErrors(stored.features, offered)
      const features = Record.map(stored.features, (_, feature) => !errors.has(feature))
      const config = { ...stored, features }
      return {
        version,
        config,
        featureErrors: errors,
        document,
        voiceSuspended
      } satisfies CurrentConfig
    })
  })
  yield* invalidation.subscribe(
    Effect.fnUntraced(function* ({ id, kind }) {
      if (kind !== "config" && kind !== "everything") return
      const cachedIds = Array.from(yield* Cache.keys(cached))
      // A push on this node has removed its cache entry already; subscribers still need the change.
      const changedIds = isEnvironmentId(id) ? [id] : []
      const changed = kind === "everything" ? cachedIds : changedIds
      yield* Effect.forEach(changed, (it) => Cache.invalidate(cached, it), { discard: true })
      yield* PubSub.publishAll(changes, changed)
    })
  )
  return { cached, changes }
})

const newest = (repository: ConfigRepository["Service"], environmentId: string) =>
  Effect.map(
    repository.newest(environmentId),
    Option.getOrElse(() => ({ version: 0, document: {}, voiceSuspended: false }))
  )

/** Features that the raw document enables and this deployment does not offer. */
const unavailableFeatures = (
  document: Schema.Json,
  offered: ReadonlySet<FeatureName>
): ReadonlyArray<FeatureName> => {
  const features = Predicate.isObject(document) ? document["features"] : undefined
  if (!Predicate.isObject(features)) return []
  return Record.keys(featureTable).filter((name) => features[name] === true && !offered.has(name))
}

/** Adds the features that this deployment does not offer to the issues of an invalid document. */
const withUnavailable = (
  issues: ReadonlyArray<Issue>,
  features: ReadonlyArray<FeatureName>
): InvalidConfig =>
  invalidConfig([
    ...issues,
    ...features.map((name) => ({
      path: memberPath("features", name),
      message: "is not offered by this deployment: remove it, or set it to false"
    }))
  ])

const makePush = Effect.gen(function* () {
  const repository = yield* ConfigRepository
  const invalidation = yield* Invalidation
  const settings = yield* Settings
  const sql = yield* SqlClient.SqlClient

  const store = Effect.fnUntraced(function* (push: ConfigPush) {
    const { document, environmentId, ifMatch, pushedBy } = push
    yield* repository.lockEnvironment(environmentId)
    const before = yield* newest(repository, environmentId)
    if (ifMatch !== undefined && !matchesTag(ifMatch, etagOf(before.version))) {
      return yield* new ConfigConflict({ details: { currentVersion: before.version } })
    }
    const changed = changedPaths(before.document, document)
    if (changed.length === 0) return { configVersion: before.version, changed }
    const version = before.version + 1
    const createdAt = yield* DateTime.now
    yield* repository.insert({ environmentId, version, document, pushedBy, createdAt })
    yield* invalidation.publish({ kind: "config", id: environmentId })
    return { configVersion: version, changed }
  })

  const validate = Effect.fn("Configs.validate")(function* ({
    document,
    duplicates = [],
    environment
  }: Pick<ConfigPush, "document" | "duplicates" | "environment">) {
    if (Buffer.byteLength(JSON.stringify(document)) > configLimits.documentMaxBytes) {
      return yield* new PayloadTooLarge({ details: { limit: configLimits.documentMaxBytes } })
    }
    const features = unavailableFeatures(document, settings.features)
    const config = yield* Effect.fromResult(
      decodeConfig(document, { production: environment === "production" })
    ).pipe(
      Effect.mapError(({ details }) =>
        withUnavailable([...duplicates, ...details.issues], features)
      )
    )
    if (duplicates.length > 0) return yield* withUnavailable(duplicates, features)
    if (features.length > 0) return yield* new FeatureUnavailable({ details: { features } })
    return configWarnings(config, document)
  })

  const push = Effect.fn("Configs.push")(function* (push: ConfigPush) {
    const warnings = yield* validate(push)
    const stored = yield* Effect.catchTag(sql.withTransaction(store(push)), "SqlError", Effect.die)
    return { ...stored, warnings }
  })

  return { push, validate }
})
