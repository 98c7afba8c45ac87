/**
 * Messages of queues and events for hooks, stored in Postgres and delivered at least once. A node
 * claims a batch of one queue or hook. Failed messages repeat with growing delays, and fail finally
 * after the last attempt.
 */
import { Context, DateTime, Effect, Latch, Layer, Schema } from "effect"
import { functionDeliveries as limits } from "#rpc/functions/limits"
import type { EnvironmentId } from "#rpc/ids"
import { type ClaimedDelivery, DeliveryRepository } from "#sql/functions/deliveries"
import { sweepHourly } from "#server/platform/database"
import { Tenant } from "#server/platform/tenant"
import { type CallFailure, FunctionsRuntime } from "./runtime.ts"
import { type DeliveryOutcome, FunctionHook } from "./stored-data.ts"
import { FunctionsLogs, FunctionsQueues, type NewMessage } from "./control-plane.ts"

/** Latch that is open while this node may have messages to deliver. */
export class NewDeliveries extends Context.Service<NewDeliveries, Latch.Latch>()(
  "server/features/functions/deliveries/NewDeliveries"
) {
  static readonly layer = Layer.effect(NewDeliveries, Latch.make(true))
}

const bytesOf = (messages: ReadonlyArray<NewMessage>): number =>
  messages.reduce((sum, { body }) => sum + body.length, 0)

export const FunctionsQueuesLive = Layer.effect(
  FunctionsQueues,
  Effect.gen(function* () {
    const newDeliveries = yield* NewDeliveries
    const repository = yield* DeliveryRepository
    return FunctionsQueues.of({
      send: Effect.fn("FunctionsQueues.send")(function* (environmentId, queue, messages) {
        const waiting = yield* repository.waiting(environmentId)
        const count = waiting.reduce((sum, row) => sum + row.count, messages.length)
        const bytes = waiting.reduce((sum, row) => sum + row.bytes, bytesOf(messages))
        if (count > limits.messagesMax || bytes > limits.messagesMaxBytes) return "full"
        const now = yield* DateTime.now
        yield* repository.insert(
          environmentId,
          queue,
          now,
          messages.map(({ body, contentType, delaySeconds }) => ({
            body,
            contentType,
            dueAt: DateTime.add(now, { seconds: delaySeconds })
          }))
        )
        yield* newDeliveries.open
        return "stored"
      }),
      waiting: (environmentId) =>
        Effect.map(
          repository.waiting(environmentId),
          (rows) => new Map(rows.map(({ count, target }) => [target, count]))
        ),
      clear: repository.clear
    })
  })
)

const isHook = Schema.is(FunctionHook)

const parseEvent = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Unknown))

const everything: DeliveryOutcome = { retry: [] }

/** Returns the seconds until the next attempt. */
const delaySeconds = (attempts: number): number =>
  Math.min(limits.retrySecondsMax, limits.retrySeconds * 2 ** Math.max(0, attempts - 1))

/** Whether a call failed in the code. A call that could not run does not count as failed. */
const isFailedCall = ({ _tag }: CallFailure): boolean =>
  _tag === "function_error" || _tag === "function_cpu_exceeded"

/**
 * Settles a batch: deletes acknowledged messages, repeats the others, and gives up after the last
 * attempt.
 */
const makeSettle = Effect.gen(function* () {
  const logs = yield* FunctionsLogs
  const repository = yield* DeliveryRepository
  const giveUp = Effect.fnUntraced(function* (
    environmentId: EnvironmentId,
    failed: ReadonlyArray<ClaimedDelivery>,
    now: DateTime.Utc
  ) {
    yield* repository.fail(
      failed.map(({ id }) => id),
      now
    )
    yield* logs.append(
      environmentId,
      failed.map(({ body, id, kind, target }) => ({
        at: DateTime.toEpochMillis(now),
        level: "error" as const,
        message: `Gave up ${kind} ${id} of ${target}: ${Buffer.from(body.subarray(0, limits.loggedBytes)).toString()}`,
        version: 0
      }))
    )
  })
  return Effect.fnUntraced(function* (
    batch: ReadonlyArray<ClaimedDelivery>,
    { retry }: DeliveryOutcome
  ) {
    const now = yield* DateTime.now
    const delays = new Map(retry.map(({ delaySeconds: own, id }) => [id, own]))
    const done = batch.filter(({ id }) => !delays.has(id))
    const failed = batch.filter(
      ({ attempts, id }) => delays.has(id) && attempts >= limits.attemptsMax
    )
    const again = batch.filter(
      ({ attempts, id }) => delays.has(id) && attempts < limits.attemptsMax
    )
    if (done.length > 0) yield* repository.delete(done.map(({ id }) => id))
    yield* repository.postpone(
      again.map(({ attempts, id }) => {
        const seconds = Math.min(limits.delaySecondsMax, delays.get(id) ?? delaySeconds(attempts))
        return { id, attempts, dueAt: DateTime.add(now, { seconds }) }
      })
    )
    const [first] = failed
    if (first !== undefined) yield* giveUp(first.environmentId, failed, now)
  })
})

/** Delivers one batch. */
const makeDeliver = Effect.gen(function* () {
  const repository = yield* DeliveryRepository
  const runtime = yield* FunctionsRuntime
  const settle = yield* makeSettle
  const call = (batch: readonly [ClaimedDelivery, ...ReadonlyArray<ClaimedDelivery>]) => {
    const [{ body, environmentId, kind, target }] = batch
    if (kind === "event") {
      if (!isHook(target)) return Effect.succeed(everything)
      const payload = parseEvent(Buffer.from(body).toString("utf8"))
      return Effect.as(runtime.hook(environmentId, target, payload), everything)
    }
    return runtime.deliver(
      environmentId,
      target,
      batch.map(({ attempts, body: bytes, contentType, id, sentAt }) => ({
        id,
        attempts,
        contentType,
        body: bytes,
        sentAt: DateTime.toEpochMillis(sentAt)
      }))
    )
  }
  /** Releases messages that could not run, without counting an attempt. */
  const giveBack = Effect.fnUntraced(function* (batch: ReadonlyArray<ClaimedDelivery>) {
    const dueAt = DateTime.add(yield* DateTime.now, { seconds: limits.retrySeconds })
    yield* repository.postpone(
      batch.map(({ attempts, id }) => ({ id, dueAt, attempts: attempts - 1 }))
    )
  })
  return (batch: readonly [ClaimedDelivery, ...ReadonlyArray<ClaimedDelivery>]) =>
    call(batch).pipe(
      Effect.catch((failure: CallFailure) =>
        isFailedCall(failure)
          ? Effect.succeed<DeliveryOutcome>({ retry: batch.map(({ id }) => ({ id })) })
          : Effect.as(giveBack(batch), undefined)
      ),
      Effect.flatMap((outcome) => (outcome === undefined ? Effect.void : settle(batch, outcome))),
      Effect.provideService(Tenant, batch[0].environmentId)
    )
})

/** Claims a due batch and returns the effect that delivers it; undefined if no batch is due. */
export const makeClaim = Effect.gen(function* () {
  const repository = yield* DeliveryRepository
  const deliver = yield* makeDeliver
  const busy = new Set<EnvironmentId>()
  const one = (delivery: ClaimedDelivery) => deliver([delivery])
  return Effect.gen(function* () {
    if (busy.size >= limits.concurrency) return undefined
    const now = yield* DateTime.now
    const until = DateTime.add(now, { seconds: limits.claimSeconds })
    const claimed = yield* repository.claim({
      now,
      until,
      limit: limits.batchMax,
      busy: [...busy]
    })
    const [first, ...rest] = claimed.toSorted((a, b) => Number(BigInt(a.id) - BigInt(b.id)))
    if (first === undefined) return undefined
    busy.add(first.environmentId)
    const delivery: Effect.Effect<void> =
      first.kind === "event"
        ? Effect.forEach([first, ...rest], one, {
            concurrency: limits.eventConcurrency,
            discard: true
          })
        : deliver([first, ...rest])
    return Effect.ensuring(
      delivery,
      Effect.sync(() => busy.delete(first.environmentId))
    )
  })
})

/** Delivers messages for as long as the node runs. */
export const FunctionsDeliveries = Layer.effectDiscard(
  Effect.gen(function* () {
    const { unavailable } = yield* FunctionsRuntime
    const repository = yield* DeliveryRepository
    yield* sweepHourly("Failed messages of functions", (now) =>
      repository.sweep(DateTime.subtract(now, { days: limits.deadDays }), limits.deadMax)
    )
    if (unavailable !== undefined) return
    const newDeliveries = yield* NewDeliveries
    const claim = yield* makeClaim
    const scope = yield* Effect.scope
    const warn = Effect.tapDefect((defect) =>
      Effect.logWarning("Failed to deliver messages to functions", defect)
    )
    const deliverNext = Effect.gen(function* () {
      yield* newDeliveries.close
      const delivery = yield* claim
      if (delivery === undefined)
        return yield* Effect.timeoutOption(newDeliveries.await, limits.pollMillis)
      // What is delivered makes room for the next batch of the environment.
      yield* Effect.forkIn(Effect.ensuring(Effect.exit(warn(delivery)), newDeliveries.open), scope)
    })
    yield* warn(deliverNext).pipe(
      Effect.catchDefect(() => Effect.sleep(limits.pollMillis)),
      Effect.forever,
      Effect.forkScoped
    )
  })
)
