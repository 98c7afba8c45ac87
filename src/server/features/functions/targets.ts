/**
 * Targets of requests for functions: `/fn/<label>/...` on the base URL, and `/.fn/...` on the origin of a
 * hosted app. A publishable key stands for the label of its environment.
 */
import { Cache, Effect, Option } from "effect"
import { InvalidKey } from "#rpc/errors/codes"
import { ProjectRepository } from "#sql/projects/repository"
import { Invalidation } from "#server/platform/invalidation"
import { sha256 } from "#server/platform/secrets"
import { makeValueCache } from "#server/platform/value-cache"
import { hostOf } from "../hosting/addresses.ts"
import { HostedApps } from "../hosting/apps.ts"
import { makeAppOfLabel } from "../hosting/labels.ts"
import type { CallMetadata } from "./host/headers.ts"

const servicePrefix = "/fn/"
const appPrefix = "/.fn/"

/** Target of a request: an environment by label, key or host, and the path within its function. */
export interface Target {
  readonly mount: CallMetadata["mount"]
  /** Label or key of the base URL, or host of an app. */
  readonly name: string
  readonly path: string
}

/** Returns the target of a request; undefined if the request is not for functions. Pure. */
export const targetOf = (
  url: string,
  host: string,
  isAppHost: (host: string) => boolean
): Target | undefined => {
  if (!url.startsWith("/.fn") && !url.startsWith(servicePrefix)) return undefined
  const name = hostOf(host)
  if (isAppHost(name)) {
    const isOwn = url.startsWith(appPrefix) || /^\/\.fn(?:\?|$)/.test(url)
    return isOwn ? { mount: "app", name, path: rooted(url.slice(appPrefix.length - 1)) } : undefined
  }
  if (!url.startsWith(servicePrefix)) return undefined
  const [, label = "", path = ""] = /^([^/?]*)(.*)$/s.exec(url.slice(servicePrefix.length)) ?? []
  return { mount: "service", name: label, path: rooted(path) }
}

const rooted = (path: string): string => (path.startsWith("/") ? path : `/${path}`)

/** A label has no underscore. */
const keyForm = /^[ps]k_/

const publishableForm = /^pk_[\w-]{43}$/

/** Returns a function that finds the environment of a publishable key. */
const makeEnvironmentOfKey = Effect.gen(function* () {
  const projects = yield* ProjectRepository
  const invalidation = yield* Invalidation
  const cached = yield* makeValueCache({
    capacity: 10_000,
    timeToLive: "10 seconds",
    lookup: (hash: string) => Effect.map(projects.findKey(hash), Option.getOrUndefined)
  })
  yield* invalidation.subscribe(({ id, kind }) => {
    if (kind === "key") return Cache.invalidate(cached, id)
    return kind === "everything" ? Cache.invalidateAll(cached) : Effect.void
  })
  return Effect.fnUntraced(function* (key: string) {
    const found = publishableForm.test(key) ? yield* Cache.get(cached, sha256(key)) : undefined
    return found ?? (yield* new InvalidKey())
  })
})

/** Returns a function that finds the environment of a target. */
export const makeEnvironmentOf = Effect.gen(function* () {
  const apps = yield* HostedApps
  const appOfLabel = yield* makeAppOfLabel
  const environmentOfKey = yield* makeEnvironmentOfKey
  return Effect.fnUntraced(function* ({ mount, name }: Target) {
    if (mount === "service") {
      return keyForm.test(name) ? yield* environmentOfKey(name) : yield* appOfLabel(name)
    }
    const app = apps.known(name) ?? (yield* apps.load(name))
    return app === "unknown" ? undefined : app
  })
})
