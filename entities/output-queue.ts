/**
 * How an entity tells nodes, and keeps time: parts that every actor of a hub shares. A watching node
 * holds one stream per entity; on the entity's own node the items take the short cut and the stream
 * is only the sign of life.
 */
import { Cause, Clock, Effect, FiberHandle, Queue, type Scope } from "effect"
import { Unavailable } from "#rpc/errors/codes"
import { rooms } from "#rpc/limits"
import type { LocalActors } from "./local-actors.ts"

/** A node that hears an entity. */
export interface Watcher<Item> {
  readonly send: (items: ReadonlyArray<Item>) => void
  /** This activation has nothing more to say: look for the entity again. */
  readonly end: () => void
}

/** Items of one step, and the activation that tells them. */
export interface OutputBatch<Item> {
  readonly epoch: number
  readonly items: ReadonlyArray<Item>
}

/**
 * What a watching node is told, from the first batch (empty: attached). A node that takes too little
 * is cut off and attaches again.
 */
export const makeOutputQueue = Effect.fnUntraced(function* <Actor, Item>(options: {
  readonly id: string
  readonly epoch: number
  /** The registry of this node when the watching node is this one. */
  readonly local: LocalActors<Actor, Item> | undefined
  /** The line to the watching node, where there is one: the stream is only the sign of life then. */
  readonly far?: ((items: ReadonlyArray<Item>, lost: () => void) => void) | undefined
  readonly attach: (watcher: Watcher<Item>) => void
  readonly detach: (watcher: Watcher<Item>) => void
}): Effect.fn.Return<Queue.Dequeue<OutputBatch<Item>, Unavailable>, never, Scope.Scope> {
  const { epoch, far, id, local } = options
  const queue = yield* Queue.bounded<OutputBatch<Item>, Unavailable>(rooms.watchBufferItems)
  let ended = false
  const end = (): void => {
    ended = true
    Queue.failCauseUnsafe(queue, Cause.fail(new Unavailable()))
  }
  const overWire = (items: ReadonlyArray<Item>): void => {
    if (!Queue.offerUnsafe(queue, { epoch, items })) end()
  }
  // After a loss nothing more is told: the node would hear it without what was lost.
  const overLine = (items: ReadonlyArray<Item>): void => {
    if (!ended) far?.(items, end)
  }
  const here = (items: ReadonlyArray<Item>): void => {
    if (items.length === 0) Queue.offerUnsafe(queue, { epoch, items })
    local?.receivers.get(id)?.receive(epoch, items)
  }
  const away = far === undefined ? overWire : overLine
  const watcher: Watcher<Item> = { send: local === undefined ? away : here, end }
  yield* Effect.acquireRelease(
    Effect.sync(() => options.attach(watcher)),
    () => Effect.sync(() => options.detach(watcher))
  )
  return queue
})

/** A timer that fires at the earliest time it was asked for (Unix milliseconds). */
export const makeTimer = Effect.fnUntraced(function* (fire: () => void) {
  const clock = yield* Clock.Clock
  const run = yield* FiberHandle.makeRuntime<never>()
  let due = Number.POSITIVE_INFINITY
  return (millis: number): void => {
    if (millis >= due) return
    due = millis
    // Never at once: what fires may set the time again, and the last to be set is the one kept.
    const wait = Math.max(1, millis - clock.currentTimeMillisUnsafe())
    run(
      Effect.delay(
        Effect.sync(() => {
          due = Number.POSITIVE_INFINITY
          fire()
        }),
        wait
      )
    )
  }
})
