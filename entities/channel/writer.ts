/**
 * Writes the rows of one node's channels, one statement at a time: at once where the caller waits for
 * it, else behind. A channel whose row belongs to a newer activation is told so and falls silent. When
 * the database is away the newest state of each channel waits, so the backlog is bounded by their
 * number.
 */
import { Clock, Context, Effect, Layer, Schedule, Semaphore } from "effect"
import { Unavailable } from "#rpc/errors/codes"
import { rooms } from "#rpc/limits"
import { ChannelRepository } from "#sql/channels"
import { ThisNode } from "../local-actors.ts"
import type { ChannelActor } from "./actor.ts"
import { SnapshotStats } from "../snapshot-counts.ts"
import type { ChannelState } from "./model.ts"
import { toRow } from "./snapshot.ts"

export class ChannelWriter extends Context.Service<ChannelWriter>()(
  "entities/channel/writer/ChannelWriter",
  {
    make: Effect.gen(function* () {
      const rows = yield* ChannelRepository
      const node = yield* ThisNode
      const dirty = new Set<ChannelActor>()
      const counts = new SnapshotStats()
      /** One write at a time, in the order in which they were asked for. */
      const writing = (yield* Semaphore.make(1)).withPermits(1)

      const rowOf = (state: ChannelState, epoch: number) =>
        Effect.map(Clock.currentTimeMillis, (now) => toRow(state, epoch, node.id, now))

      const write = Effect.fnUntraced(function* (actor: ChannelActor) {
        const { epoch, fenced, state } = actor
        dirty.delete(actor)
        if (state === undefined) return
        if (fenced) return yield* new Unavailable()
        const saved = yield* rows.save(yield* rowOf(state, epoch))
        if (saved) return counts.wrote(1)
        counts.fenced += 1
        actor.fence()
        return yield* new Unavailable()
      })

      /** What could not be written is tried again. */
      const attempt = (actor: ChannelActor) =>
        Effect.onError(write(actor), () =>
          Effect.map(Clock.currentTimeMillis, (now) => {
            if (actor.fenced) return
            dirty.add(actor)
            counts.failed(now)
          })
        )

      const save = (actor: ChannelActor) => writing(attempt(actor))

      /** Channels that end together all flush: what one of them has written is not written again. */
      const flush = Effect.suspend(() =>
        Effect.forEach(
          Array.from(dirty),
          (actor) =>
            Effect.catchCause(
              writing(Effect.suspend(() => (dirty.has(actor) ? attempt(actor) : Effect.void))),
              (cause) => Effect.logWarning("A channel could not be written", cause)
            ),
          { discard: true }
        )
      )

      yield* flush.pipe(Effect.repeat(Schedule.spaced(rooms.snapshotMillis)), Effect.forkScoped)

      return {
        counts,
        /** Channels whose row is not written yet. */
        waiting: () => dirty.size,
        /** What is stored of the channel has changed. */
        changed: (actor: ChannelActor): void => {
          dirty.add(actor)
        },
        /** Writes the channel now; fails when this activation has no say any more. */
        save,
        /** Writes everything now: a channel is about to move. */
        flush,
        /** A new channel's row; false when there is one of its name. */
        insert: (state: ChannelState, epoch: number) =>
          writing(Effect.flatMap(rowOf(state, epoch), rows.insert)),
        /** Forgets a channel that is over. */
        remove: (environmentId: string, name: string, epoch: number) =>
          writing(rows.remove(environmentId, name, epoch))
      }
    })
  }
) {
  static readonly layer = Layer.effect(ChannelWriter, this.make)
}
