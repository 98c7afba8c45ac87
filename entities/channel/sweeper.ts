/**
 * Activates unmanaged channels whose row is overdue: their runner died and nobody has used them since.
 * Once active, they close if nobody joins. One sweeper per cluster.
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
  const repository = yield* ChannelRepository
  const client = yield* Channel.client
  const now = yield* Clock.currentTimeMillis
  const overdue = yield* repository.overdue(iso(now), channelsPerSweep)
  yield* Effect.forEach(
    overdue,
    ({ environmentId, name }) => Effect.ignore(client(channelId(environmentId, name)).Wake()),
    { concurrency, discard: true }
  )
})

export const ChannelSweeper = Singleton.make(
  "ChannelSweeper",
  sweep.pipe(
    Effect.catchCause((cause) => Effect.logWarning("Failed to sweep overdue channels", cause)),
    Effect.repeat(Schedule.spaced(sweepMillis))
  )
)
