/** The link to a matchmaking queue when the queue ends its stream: what the next one is sent. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Latch, Layer, Queue, Stream } from "effect"
import { TestRunner } from "effect/cluster"
import { Unavailable } from "#rpc/errors/codes"
import { makeLocalActors } from "#entities/local-actors"
import type { QueueActor } from "#entities/matchmaking-queue/actor"
import {
  MatchmakingQueue,
  type QueueBatch,
  type QueueInput,
  type QueueOutput
} from "#entities/matchmaking-queue/protocol"
import { detachedInputsMax } from "#server/links/entity-link"
import { QueueLink } from "#server/links/queue-link"
import { makeNodeContext } from "../support/node-context.ts"
import { queueSettings } from "../support/queue-harness.ts"

const ticket = {
  t: "enqueue",
  ticketId: "tic_1",
  joiningPlayer: {
    playerId: "ann",
    displayName: "Ann",
    relayOnly: false,
    node: "n1",
    connectionId: "con_1"
  },
  settings: queueSettings({ minPlayers: 2, maxPlayers: 2, fillTimeoutSeconds: 0 }, 1)
} as const

type BatchQueue = Queue.Queue<QueueBatch, Unavailable>

/** A queue whose streams and inputs a test sees. It replies to calls once the latch is open. */
const makeQueueEntity = Effect.gen(function* () {
  const streams = yield* Queue.unbounded<BatchQueue>()
  const calls = yield* Queue.unbounded<ReadonlyArray<QueueInput>>()
  const replies = yield* Latch.make(false)
  const entity = MatchmakingQueue.toLayer(
    MatchmakingQueue.of({
      Watch: () =>
        Stream.unwrap(
          Effect.gen(function* () {
            const batches = yield* Queue.unbounded<QueueBatch, Unavailable>()
            Queue.offerUnsafe(batches, { epoch: 1, items: [] })
            Queue.offerUnsafe(streams, batches)
            return Stream.fromQueue(batches)
          })
        ),
      Input: ({ payload }) =>
        Effect.suspend(() => {
          Queue.offerUnsafe(calls, payload.inputs)
          return replies.await
        })
    }),
    { concurrency: "unbounded" }
  )
  return { entity, streams, calls, replies }
})

const makeLink = Effect.gen(function* () {
  const client = yield* MatchmakingQueue.client
  return new QueueLink({
    id: "env_1/duel",
    environmentId: "env_1",
    name: "duel",
    client,
    local: makeLocalActors<QueueActor, QueueOutput>(),
    context: yield* makeNodeContext
  })
})

/** The replies of a queue to these commands: it cancels a ticket that it has. */
const repliesTo = (inputs: ReadonlyArray<QueueInput>): ReadonlyArray<QueueOutput> => {
  const tickets = new Set<string>()
  return inputs.flatMap(({ command, seq }): ReadonlyArray<QueueOutput> => {
    if (command.t === "enqueue") tickets.add(command.ticketId)
    if (command.t !== "cancel") return []
    return [{ kind: "cancelled", seq, cancelled: tickets.delete(command.ticketId) }]
  })
}

describe("the link to a matchmaking queue", () => {
  it.live("cancels a ticket whose cancellation was not sent when the stream ended", () =>
    Effect.gen(function* () {
      const { calls, entity, replies, streams } = yield* makeQueueEntity
      yield* Effect.gen(function* () {
        const link = yield* makeLink
        link.start(() => undefined)
        const waiting = yield* Effect.forkChild(Effect.exit(link.wait(ticket)))
        const first = yield* Queue.take(streams)
        yield* Queue.take(calls)
        const cancelling = yield* Effect.forkChild(link.cancel("tic_1"), { startImmediately: true })
        yield* Queue.fail(first, new Unavailable())
        const second = yield* Queue.take(streams)
        const items = repliesTo(yield* Queue.take(calls))
        Queue.offerUnsafe(second, { epoch: 1, items })
        assert.isTrue(yield* Fiber.join(cancelling))
        assert.strictEqual((yield* Fiber.join(waiting))._tag, "Failure")
        yield* replies.open
      }).pipe(Effect.provide(entity.pipe(Layer.provideMerge(TestRunner.layer))))
    }).pipe(Effect.scoped)
  )

  it.live("cancels all tickets of a node at once, more than wait for an entity that moves", () =>
    Effect.gen(function* () {
      const { calls, entity, replies } = yield* makeQueueEntity
      yield* replies.open
      yield* Effect.gen(function* () {
        const link = yield* makeLink
        const ids = Array.from({ length: detachedInputsMax + 500 }, (_, i) => `tic_${i}`)
        const waiting = yield* Effect.forEach(ids, (ticketId) =>
          Effect.forkChild(Effect.exit(link.wait({ ...ticket, ticketId })), {
            startImmediately: true
          })
        )
        link.start(() => undefined)
        const cancelled = new Set<string>()
        let enqueued = 0
        while (cancelled.size < ids.length) {
          for (const { command } of yield* Queue.take(calls)) {
            if (command.t === "enqueue") enqueued += 1
            if (command.t === "cancel") cancelled.add(command.ticketId)
          }
          if (enqueued === ids.length) link.failAll(new Unavailable())
        }
        yield* Effect.forEach(waiting, Fiber.join)
      }).pipe(Effect.provide(entity.pipe(Layer.provideMerge(TestRunner.layer))))
    }).pipe(Effect.scoped)
  )
})
