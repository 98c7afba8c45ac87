/**
 * Applies config pushes to live entities and connections. Without multiplayer, rooms close and tickets
 * are cancelled; tickets of a removed mode fail. Rooms keep the mode they were opened with. Without
 * realtime channels, these close. Without voice, or while the operator suspends it, calls end. A new
 * audience changes what each player's age allows.
 */
import { Effect, Layer, Stream } from "effect"
import type { FeatureName } from "#rpc/config-document/features"
import type { EnvironmentId } from "#rpc/ids"
import { entitiesOnNode } from "#entities/registry"
import { VoiceCalls } from "#entities/voice-session/calls"
import { forEachInSlices } from "#server/platform/slices"
import { Hub } from "#server/links/hub"
import { Configs } from "#server/features/config/service"
import { applyModes } from "#server/features/matchmaking/frames"
import { applyAgeBand } from "./age-restrictions.ts"
import { makePendingBatches } from "#server/platform/pending-changes"

/** Closes what needs a feature that these environments are without: what lives here, and through links. */
const closeWithout = Effect.fnUntraced(function* (
  feature: FeatureName,
  environmentIds: ReadonlySet<string>
) {
  const { closable } = yield* Hub
  for (const { closesWithout, groups } of yield* entitiesOnNode) {
    if (closesWithout !== feature) continue
    yield* forEachInSlices(groups?.actors.values() ?? [], (actor) => {
      if (environmentIds.has(actor.environmentId ?? "")) actor.close("feature_disabled")
    })
  }
  const links = closable
    .filter(([needed]) => needed === feature)
    .flatMap(([, all]) => Array.from(environmentIds).flatMap((id) => all.inEnvironment(id)))
  yield* Effect.forEach(links, (link) => Effect.ignore(link.shut()), {
    concurrency: 16,
    discard: true
  })
})

/** Applies the new configs. It looks through all rooms once, however many configs are new. */
const apply = Effect.fnUntraced(function* (environmentIds: ReadonlyArray<EnvironmentId>) {
  const hub = yield* Hub
  const configs = yield* Configs
  const calls = yield* VoiceCalls
  const without = hub.closable.map(([feature]) => ({ feature, ids: new Set<string>() }))
  for (const environmentId of new Set(environmentIds)) {
    yield* applyModes(environmentId)
    const { config, voiceSuspended } = yield* configs.current(environmentId)
    yield* forEachInSlices(hub.connections.inEnvironment(environmentId), (connection) =>
      applyAgeBand(hub, connection, config.audience, connection.declaredAgeBand)
    )
    for (const { feature, ids } of without) {
      if (!config.features[feature]) ids.add(environmentId)
    }
    if (!voiceSuspended) calls.resume(environmentId)
    if (voiceSuspended) calls.endAll(environmentId, "suspended")
    else if (!config.features.voice) calls.endAll(environmentId, "unavailable")
  }
  for (const { feature, ids } of without) if (ids.size > 0) yield* closeWithout(feature, ids)
})

export const ConfigChanges = Layer.effectDiscard(
  Effect.gen(function* () {
    const configs = yield* Configs
    const context = yield* Effect.context<Effect.Services<ReturnType<typeof apply>>>()
    const applyUntilDone = yield* makePendingBatches
    const applyTo = (environmentIds: ReadonlyArray<EnvironmentId>) =>
      Effect.orDie(Effect.provideContext(apply(environmentIds), context))
    yield* configs.changes.pipe(
      Stream.runForEachArray((environmentIds) => applyUntilDone(environmentIds, applyTo)),
      Effect.forkScoped
    )
  })
)
