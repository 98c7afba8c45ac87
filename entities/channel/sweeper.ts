/**
 * Wakes channels of players that live nowhere: their runner died and nobody has asked for them since.
 * Awake, they end when nobody comes. One per cluster.
 */
import { Clock, Effect, Schedule } from "effect"
import { Singleton } from "effect/cluster"
import { ChannelRepository } from "#sql/channels"
import { iso } from "./model.ts"
import { Channel, channelId } from "./protocol.ts"

const sweepMillis = 15_000
const channelsPerSweep = 200
const concurrency = 16

const sweep = Effect.gen(function* () {
  const rows = yield* ChannelRepository
  const client = yield* Channel.client
  const now = yield* Clock.currentTimeMillis
  const late = yield* rows.overdue(iso(now), channelsPerSweep)
  yield* Effect.forEach(
    late,
    ({ environmentId, name }) => Effect.ignore(client(channelId(environmentId, name)).Wake()),
    { concurrency, discard: true }
  )
})

export const ChannelSweeper = Singleton.make(
  "ChannelSweeper",
  sweep.pipe(
    Effect.catchCause((cause) => Effect.logWarning("Channels could not be swept", cause)),
    Effect.repeat(Schedule.spaced(sweepMillis))
  )
)
