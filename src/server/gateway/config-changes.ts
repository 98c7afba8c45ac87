/**
 * Applies config pushes to live entities and connections. Without multiplayer, rooms close and tickets
 * are cancelled; tickets of a removed mode fail. Rooms keep the mode they were opened with. Without
 * realtime channels, these close. Without voice, or while the operator suspends it, calls end. A new
 * audience changes what each player's age allows.
 */
import { Effect, Layer, Stream } from "effect"
import type { EnvironmentId } from "#rpc/ids"
import { LocalRooms } from "#entities/room/entity"
import { VoiceCalls } from "#entities/voice-session/calls"
import { forEachInSlices } from "#server/platform/slices"
import { Hub } from "#server/links/hub"
import { Configs } from "#server/features/config/service"
import { applyModes } from "#server/features/matchmaking/frames"
import { applyAgeBand } from "./age-restrictions.ts"
import { makePendingBatches } from "#server/platform/pending-changes"

/** Closes the rooms that live here, and those that players of this node are in. */
const closeRooms = Effect.fnUntraced(function* (environmentIds: ReadonlySet<string>) {
  const hub = yield* Hub
  const { actors } = yield* LocalRooms
  yield* forEachInSlices(actors.values(), (actor) => {
    if (environmentIds.has(actor.state?.settings.environmentId ?? "")) {
      actor.close("feature_disabled")
    }
  })
  yield* Effect.forEach(
    Array.from(environmentIds).flatMap((id) => hub.rooms.inEnvironment(id)),
    ({ roomId }) => Effect.ignore(hub.roomClient(roomId).Close({ reason: "feature_disabled" })),
    { concurrency: 16, discard: true }
  )
})

/** Closes the channels that connections of this node are in. */
const closeChannels = Effect.fnUntraced(function* (environmentId: string) {
  const hub = yield* Hub
  yield* Effect.forEach(
    hub.channels.inEnvironment(environmentId),
    ({ name }) => Effect.ignore(hub.channel(environmentId, name).Shut()),
    { concurrency: 16, discard: true }
  )
})

/** Applies the new configs. It looks through all rooms once, however many configs are new. */
const apply = Effect.fnUntraced(function* (environmentIds: ReadonlyArray<EnvironmentId>) {
  const hub = yield* Hub
  const configs = yield* Configs
  const calls = yield* VoiceCalls
  const withoutRooms = new Set<string>()
  for (const environmentId of new Set(environmentIds)) {
    yield* applyModes(environmentId)
    const { config, voiceSuspended } = yield* configs.current(environmentId)
    yield* forEachInSlices(hub.connections.inEnvironment(environmentId), (connection) =>
      applyAgeBand(hub, connection, config.audience, connection.declaredAgeBand)
    )
    if (!config.features.multiplayer) withoutRooms.add(environmentId)
    if (!config.features.realtimeChannels) yield* closeChannels(environmentId)
    if (!voiceSuspended) calls.resume(environmentId)
    if (voiceSuspended) calls.endAll(environmentId, "suspended")
    else if (!config.features.voice) calls.endAll(environmentId, "unavailable")
  }
  if (withoutRooms.size > 0) yield* closeRooms(withoutRooms)
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
