/**
 * Writes the rows of one node's channels, one channel per statement, a few at a time: at once where the
 * caller waits for it, else behind. A channel whose row belongs to a newer activation is fenced.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { Unavailable } from "#rpc/errors/codes"
import { ChannelRepository } from "#sql/channels"
import type { StoredLink } from "../executed-commands.ts"
import { ThisNode } from "../local-actors.ts"
import { makeWriteBehind } from "../write-behind.ts"
import { absentOf } from "./absences.ts"
import type { ChannelActor } from "./actor.ts"
import type { ChannelState } from "./model.ts"
import { toRow } from "./snapshot.ts"

/** Channels that are written at a time: all of a runner that stops, for instance. */
const batchSize = 8

export class ChannelWriter extends Context.Service<ChannelWriter>()(
  "entities/channel/writer/ChannelWriter",
  {
    make: Effect.gen(function* () {
      const repository = yield* ChannelRepository
      const node = yield* ThisNode
      const writeBehind = yield* makeWriteBehind<ChannelActor>("channels")
      const { attempt, dirty, withLock, inBatches, nextWriteNumber, stats, warn } = writeBehind

      /** With `isLast`, the row of a channel that leaves this runner. */
      const rowOf = (
        state: ChannelState,
        epoch: number,
        links: ReadonlyArray<StoredLink>,
        isLast: boolean
      ) =>
        Effect.map(Clock.currentTimeMillis, (now) => ({
          ...toRow(state, epoch, node.id, now, links, isLast ? absentOf(state, now) : []),
          writeNumber: nextWriteNumber()
        }))

      const write = Effect.fnUntraced(function* (actor: ChannelActor) {
        const { activation, state } = actor
        const { epoch, executed, fenced, retired } = activation
        if (state === undefined) return
        if (fenced) return yield* new Unavailable()
        const row = yield* rowOf(state, epoch, executed.stored(), retired)
        const saved = yield* repository.save(row)
        if (saved) return stats.recordWritten(1)
        stats.recordFenced()
        activation.fence()
        return yield* new Unavailable()
      })

      const save = (actor: ChannelActor) => withLock(attempt([actor], write(actor)))

      /** Skips a channel that another write has written meanwhile. */
      const flush = inBatches(dirty, batchSize, (batch) =>
        Effect.forEach(batch, (actor) => warn(attempt([actor], write(actor))), {
          concurrency: batchSize,
          discard: true
        })
      )

      yield* writeBehind.flushPeriodically(flush)

      return {
        counts: stats,
        /** Number of channels whose newest state is not written. */
        waiting: () => dirty.size,
        /** Marks the channel dirty after a change of its stored part. */
        markDirty: writeBehind.markDirty,
        /** Writes the channel now; fails if a newer activation owns it. */
        save,
        /** Writes all dirty channels now. */
        flush: writeBehind.shared(flush),
        /** Inserts the row of a new channel; false if the name is taken. */
        insert: (state: ChannelState, epoch: number) =>
          withLock(Effect.flatMap(rowOf(state, epoch, [], false), repository.insert)),
        /** Removes the row of a closed channel. */
        remove: (environmentId: string, name: string, epoch: number) =>
          withLock(repository.remove(environmentId, name, epoch))
      }
    })
  }
) {
  static readonly layer = Layer.effect(ChannelWriter, this.make)
}
