/**
 * Activates unmanaged channels whose row is overdue: their runner died and nobody has used them since.
 * Once active, they close if nobody joins. One sweeper per cluster.
 */
import { Clock, Effect, Schedule } from "effect"
import { Singleton } from "effect/cluster"
import { ChannelRepository } from "#sql/channels"
import { makeSweep } from "../sweep.ts"
import { iso } from "./model.ts"
import { Channel, channelId } from "./protocol.ts"

const sweepMillis = 15_000

export const ChannelSweeper = Singleton.make(
  "ChannelSweeper",
  Effect.gen(function* () {
    const repository = yield* ChannelRepository
    const client = yield* Channel.client
    const sweep = makeSweep(
      (limit, skipped) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) =>
          repository.overdue(iso(now), limit, skipped)
        ),
      ({ environmentId, name }) => client(channelId(environmentId, name)).Wake()
    )
    yield* sweep.pipe(
      Effect.catchCause((cause) => Effect.logWarning("Failed to sweep overdue channels", cause)),
      Effect.repeat(Schedule.spaced(sweepMillis))
    )
  })
)
