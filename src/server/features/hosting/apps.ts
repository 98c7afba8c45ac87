/**
 * Hosted apps of this node, by host name. The node answers for known hosts from memory, without a
 * fiber. An activation or a change of the config reaches every node within a second.
 */
import { readFile } from "node:fs/promises"
import { Clock, Context, Effect, Layer, Option } from "effect"
import type { EnvironmentName } from "#rpc/auth"
import { hosting } from "#rpc/hosting/limits"
import { reservedPaths } from "#rpc/hosting/paths"
import type { DeploymentId, EnvironmentId } from "#rpc/ids"
import { AppRepository } from "#sql/hosting/apps"
import { BlobRepository } from "#sql/hosting/blobs"
import { DeploymentRepository } from "#sql/hosting/deployments"
import { Invalidation } from "#server/platform/invalidation"
import { monotonicMillis } from "#entities/monotonic"
import { Settings } from "#server/platform/settings/settings"
import { Configs } from "../config/service.ts"
import { makeAddresses, parseLabel } from "./addresses.ts"
import { Blobs } from "./blobs.ts"
import { CustomDomains } from "./domains.ts"
import { hostsMax } from "./labels.ts"
import { makeSite, parseSettings, type Site } from "./site.ts"

/** App of a host. */
export interface HostedApp {
  readonly environmentId: EnvironmentId
  readonly name: EnvironmentName
  /**
   * Whether the host names one version or the development environment. Search engines must not index
   * it.
   */
  readonly isPreview: boolean
  readonly enabled: boolean
  readonly publishableKey: { readonly plain: string; readonly hash: string } | undefined
  /** Whether the host names one version, instead of the live one. */
  readonly isVersion: boolean
  /** Whether the host names a version that does not exist or is not ready. */
  readonly isAbsentVersion: boolean
  /** Site of the host; undefined without a deployment, or if the version does not exist. */
  readonly site: Site | undefined
}

/** Reason why a host serves nothing. */
export type NoApp = "unknown"

interface Known {
  /** Label at load time. A custom domain may lead to another environment since. */
  readonly label: string | undefined
  readonly app: HostedApp | NoApp
  readonly until: number
}

/** Bounds how long a node serves an old version when an invalidation message is lost. */
const cacheMillis = 60_000

export class HostedApps extends Context.Service<
  HostedApps,
  {
    /** Whether a host belongs to an app. The service itself must not answer there. */
    readonly isAppHost: (host: string) => boolean
    /** The label of the environment behind a host: its slug, or `<slug>--dev`. */
    readonly labelOf: (host: string) => string | undefined
    /** Returns the app of a host, if this node has loaded it. */
    readonly known: (host: string) => HostedApp | NoApp | undefined
    readonly load: (host: string) => Effect.Effect<HostedApp | NoApp>
    /** Whether an origin belongs to the environment's own app. */
    readonly isOwnOrigin: (environmentId: EnvironmentId, origin: string) => Effect.Effect<boolean>
  }
>()("server/features/hosting/apps/HostedApps") {
  static readonly layer = Layer.effect(
    HostedApps,
    Effect.gen(function* () {
      const { baseUrl, hosting } = yield* Settings
      const addresses = makeAddresses({ baseUrl, domain: hosting.domain })
      const ownHost = new URL(baseUrl).hostname
      const { labelOf: labelOfDomain } = yield* CustomDomains
      const labelIn = (host: string): string | undefined =>
        addresses.labelIn(host) ?? labelOfDomain(host)
      const hosts = yield* makeHosts(labelIn)
      const isAppHost = (host: string): boolean => host !== ownHost && labelIn(host) !== undefined
      return HostedApps.of({
        isAppHost,
        labelOf: (host) => labelIn(host)?.replace(/^v\d+--/, ""),
        known: hosts.known,
        load: hosts.load,
        isOwnOrigin: Effect.fnUntraced(function* (environmentId, origin) {
          const url = URL.parse(origin)
          if (url === null || url.origin !== origin || !isAppHost(url.hostname)) return false
          if (addresses.at(url.hostname) !== origin) return false
          const app = hosts.known(url.hostname) ?? (yield* hosts.load(url.hostname))
          return app !== "unknown" && app.environmentId === environmentId
        })
      })
    })
  ).pipe(Layer.provide(Blobs.layer))
}

/** The label of the environment behind a host, with the version before it. */
type LabelIn = (host: string) => string | undefined

/** Hosts that this node has loaded, and a function that loads others. */
const makeHosts = Effect.fnUntraced(function* (labelIn: LabelIn) {
  const invalidation = yield* Invalidation
  const now = monotonicMillis(yield* Clock.Clock)
  const loadApp = yield* makeLoad
  const hosts = new Map<string, Known>()
  let changes = 0
  const forget = (isStale: (app: HostedApp | NoApp) => boolean) =>
    Effect.sync(() => {
      changes += 1
      for (const [host, { app }] of hosts) if (isStale(app)) hosts.delete(host)
    })
  yield* invalidation.subscribe(({ id, kind }) => {
    if (kind === "everything") return forget(() => true)
    // A new project, or a restored one, may have any of the unknown hosts.
    if (kind === "config") return forget((app) => app === "unknown" || app.environmentId === id)
    if (kind !== "key") return Effect.void
    return forget((app) => app !== "unknown" && app.publishableKey?.hash === id)
  })
  return {
    known: (host: string): HostedApp | NoApp | undefined => {
      const known = hosts.get(host)
      if (known === undefined || known.until < now()) return undefined
      return known.label === labelIn(host) ? known.app : undefined
    },
    load: Effect.fn("HostedApps.load")(function* (host: string) {
      const before = changes
      const label = labelIn(host)
      const app = yield* loadApp(label ?? "")
      // What changed meanwhile may be what was read.
      if (changes !== before) return app
      const [oldest] = hosts.keys()
      if (hosts.size >= hostsMax && oldest !== undefined) hosts.delete(oldest)
      hosts.set(host, { label, app, until: now() + cacheMillis })
      return app
    })
  }
})

const makeLoad = Effect.gen(function* () {
  const apps = yield* AppRepository
  const configs = yield* Configs
  const deployments = yield* DeploymentRepository
  const siteOf = yield* makeSites
  return Effect.fnUntraced(function* (text: string): Effect.fn.Return<HostedApp | NoApp> {
    const label = parseLabel(text)
    if (label === undefined) return "unknown"
    const found = yield* apps.bySlug(label)
    if (Option.isNone(found)) return "unknown"
    const { environmentId, name } = found.value
    const { config } = yield* configs.current(environmentId)
    const { version } = label
    const deployment =
      version === undefined
        ? yield* deployments.live(environmentId)
        : yield* deployments.find({ environmentId, id: null, version })
    const ready = Option.filter(deployment, ({ status }) => status === "ready")
    return {
      environmentId,
      name,
      isPreview: version !== undefined || name !== "production",
      isVersion: version !== undefined,
      isAbsentVersion: version !== undefined && Option.isNone(ready),
      enabled: config.features.hosting,
      publishableKey: Option.getOrUndefined(yield* apps.publishableKey(environmentId)),
      site: Option.isNone(ready) ? undefined : yield* siteOf(environmentId, ready.value.id)
    }
  })
})

/**
 * Sites that this node has loaded, with a bound on the number of their files. A deployment never
 * changes.
 */
const makeSites = Effect.gen(function* () {
  const blobs = yield* Blobs
  const rows = yield* BlobRepository
  const deployments = yield* DeploymentRepository
  const sites = new Map<DeploymentId, Site>()
  let files = 0
  const keep = (id: DeploymentId, site: Site): void => {
    const known = sites.get(id)
    if (known === undefined) files += site.files.size
    sites.delete(id)
    sites.set(id, site)
    for (const [oldest, { files: its }] of sites) {
      if (files <= hosting.cachedFiles || oldest === id) break
      sites.delete(oldest)
      files -= its.size
    }
  }
  const readSettings = Effect.fnUntraced(function* (environmentId: EnvironmentId, sha256: string) {
    const path = yield* blobs.open(environmentId, sha256, "")
    return parseSettings(yield* Effect.promise(() => readFile(path, "utf8"))) ?? {}
  })
  return Effect.fnUntraced(function* (environmentId: EnvironmentId, id: DeploymentId) {
    const known = sites.get(id)
    if (known !== undefined) {
      keep(id, known)
      return known
    }
    const manifest = yield* deployments.files({ environmentId, id })
    if (manifest === undefined) return undefined
    const own = manifest.find(({ path }) => path === reservedPaths.settings)
    const settings =
      own === undefined
        ? {}
        : yield* Effect.orElseSucceed(readSettings(environmentId, own.sha256), () => ({}))
    const site = makeSite(manifest, yield* rows.ofDeployment(environmentId, id), settings)
    keep(id, site)
    return site
  })
})
