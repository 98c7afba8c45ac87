/**
 * What a config push means for what is alive (decisions 3.7.18): with multiplayer off rooms close and
 * tickets end; tickets of a removed mode fail. Living rooms keep the mode they started with. With
 * channels off these close; an audience that makes players children takes them out of channels that
 * players have made, and hides their addresses.
 */
import { Effect, Layer, Stream } from "effect"
import type { EnvironmentId } from "#rpc/ids"
import { LocalRooms } from "#entities/room/entity"
import { ChannelHub } from "#server/links/channel-hub"
import { Hub } from "#server/links/hub"
import { Configs } from "#server/features/config/service"
import { followModes } from "#server/features/matchmaking/frames"
import { applyAgeBand } from "./player-changes.ts"

/** Closes the rooms that live here, and those that players of this node are in, wherever they live. */
const closeRooms = Effect.fnUntraced(function* (environmentId: string) {
  const hub = yield* Hub
  const { actors } = yield* LocalRooms
  for (const actor of Array.from(actors.values())) {
    if (actor.state?.settings.environmentId === environmentId) actor.close("feature_disabled")
  }
  const lines = Array.from(hub.rooms.values()).filter(
    (line) => line.environmentId === environmentId
  )
  yield* Effect.forEach(
    lines,
    ({ roomId }) => Effect.ignore(hub.roomClient(roomId).Close({ reason: "feature_disabled" })),
    { concurrency: 16, discard: true }
  )
})

const closeChannels = Effect.fnUntraced(function* (environmentId: string) {
  const { channel, links } = yield* ChannelHub
  const lines = Array.from(links.values()).filter((line) => line.environmentId === environmentId)
  yield* Effect.forEach(lines, ({ name }) => Effect.ignore(channel(environmentId, name).Shut()), {
    concurrency: 16,
    discard: true
  })
})

const apply = Effect.fnUntraced(function* (environmentId: EnvironmentId) {
  const hub = yield* Hub
  const configs = yield* Configs
  yield* followModes(environmentId)
  const { config } = yield* configs.current(environmentId)
  for (const connection of hub.connections.values()) {
    if (connection.environmentId !== environmentId) continue
    applyAgeBand(hub, connection, config.audience, connection.declaredAgeBand)
  }
  if (!config.features.multiplayer) yield* closeRooms(environmentId)
  if (!config.features.realtimeChannels) yield* closeChannels(environmentId)
})

export const ConfigChanges = Layer.effectDiscard(
  Effect.gen(function* () {
    const configs = yield* Configs
    yield* configs.changes.pipe(Stream.runForEach(apply), Effect.forkScoped)
  })
)
