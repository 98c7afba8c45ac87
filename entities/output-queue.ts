/**
 * Output queue between an entity and one watching node. The node holds one `Watch` stream per entity.
 * If outputs take a shorter way (same node, or a runner link), the stream only shows that the entity
 * still lives there.
 */
import { Cause, Effect, Queue, type Scope } from "effect"
import { Unavailable } from "#rpc/errors/codes"
import type { LocalActors } from "./local-actors.ts"
import type { Watcher } from "./watchers.ts"

export const watchBufferItems = 16_384

/** Outputs of one step, with the epoch of the activation that sent them. */
export interface OutputBatch<Output> {
  readonly epoch: number
  readonly items: ReadonlyArray<Output>
}

/** Sends outputs over a runner link. */
export type SendByLink<Output> = (outputs: ReadonlyArray<Output>, onLost: () => void) => void

/**
 * Attaches a node and returns the queue of its stream. The first batch is empty and confirms the
 * attachment. A node that reads too slowly is disconnected and attaches again.
 */
export const makeOutputQueue = Effect.fnUntraced(function* <Actor, Output>(options: {
  readonly id: string
  readonly epoch: number
  /** Registry of this node, if the watching node is this one. */
  readonly local: LocalActors<Actor, Output> | undefined
  /** The runner link to the watching node, where there is one. */
  readonly remote?: SendByLink<Output> | undefined
  readonly attach: (watcher: Watcher<Output>) => void
  readonly detach: (watcher: Watcher<Output>) => void
}): Effect.fn.Return<Queue.Dequeue<OutputBatch<Output>, Unavailable>, never, Scope.Scope> {
  const { epoch, id, local, remote } = options
  const queue = yield* Queue.bounded<OutputBatch<Output>, Unavailable>(watchBufferItems)
  let ended = false
  const end = (): void => {
    ended = true
    Queue.failCauseUnsafe(queue, Cause.fail(new Unavailable()))
  }
  const sendByStream = (items: ReadonlyArray<Output>): void => {
    if (!Queue.offerUnsafe(queue, { epoch, items })) end()
  }
  // After a lost batch the node must attach again: later outputs alone would leave a gap.
  const sendByLink = (items: ReadonlyArray<Output>): void => {
    if (!ended) remote?.(items, end)
  }
  const sendLocally = (items: ReadonlyArray<Output>): void => {
    if (items.length === 0) Queue.offerUnsafe(queue, { epoch, items })
    local?.receivers.get(id)?.receive(epoch, items)
  }
  const sendAway = remote === undefined ? sendByStream : sendByLink
  const watcher: Watcher<Output> = { send: local === undefined ? sendAway : sendLocally, end }
  yield* Effect.acquireRelease(
    Effect.sync(() => options.attach(watcher)),
    () => Effect.sync(() => options.detach(watcher))
  )
  return queue
})
