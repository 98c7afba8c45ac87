/**
 * Environments by the labels in addresses, `<slug>` or `<slug>--dev`. A node caches them for seconds. A
 * deletion or restoration of a project takes effect at once on every node.
 */
import { Cache, Effect, Option } from "effect"
import { AppRepository } from "#sql/hosting/apps"
import { Invalidation } from "#server/platform/invalidation"
import { makeValueCache } from "#server/platform/value-cache"
import { parseLabel } from "./addresses.ts"

/** Host names of hosted apps that a node caches, unknown ones included. */
export const hostsMax = 10_000

/** Returns a function that finds the environment of a label; undefined if no environment has it. */
export const makeAppOfLabel = Effect.gen(function* () {
  const apps = yield* AppRepository
  const invalidation = yield* Invalidation
  const cached = yield* makeValueCache({
    capacity: hostsMax,
    timeToLive: "10 seconds",
    lookup: (label: string) => {
      const parsed = parseLabel(label)
      if (parsed === undefined || parsed.version !== undefined) return Effect.undefined
      return Effect.map(apps.bySlug(parsed), Option.getOrUndefined)
    }
  })
  yield* invalidation.subscribe(({ kind }) =>
    kind === "config" || kind === "everything" ? Cache.invalidateAll(cached) : Effect.void
  )
  return (label: string) => Cache.get(cached, label)
})
