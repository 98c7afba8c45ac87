/**
 * Activates unmanaged channels whose row is overdue: their runner died and nobody has used them since.
 * Once active, they close if nobody joins. One sweeper per cluster.
 */
import { Clock, Effect, HashMap, Layer, Schedule } from "effect"
import { Singleton } from "effect/cluster"
import { ChannelRepository } from "#sql/channels"
import { stayAwake } from "../stay-awake.ts"
import { makeSweep } from "../sweep.ts"
import { LocalChannels } from "./entity.ts"
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

/** Keeps the channels of this node in memory whose members are all absent. */
export const WakefulChannels = Layer.effectDiscard(
  Effect.gen(function* () {
    const { actors } = yield* LocalChannels
    const client = yield* Channel.client
    yield* stayAwake(
      actors,
      ({ state, watchers }) =>
        state !== undefined && !HashMap.isEmpty(state.members) && !watchers.isWatched,
      (id) => client(id).Wake()
    )
  })
)
