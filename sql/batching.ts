/**
 * Batches statements that arrive in the same event-loop tick or while earlier ones are in flight: reads by
 * id, and writes, at most one per owner and statement. A statement costs about as much for one row as for
 * fifty, and so does a commit.
 */
import { Effect, Exit, type Tracer } from "effect"

/** Finds rows of an environment by id; ids without a row are absent from the map. */
export type Find<A> = (
  environmentId: string,
  ids: ReadonlyArray<string>
) => Effect.Effect<ReadonlyMap<string, A>>

/** The ids of a statement to come, and the callers that wait for it. */
interface ReadBatch<A> {
  readonly ids: Array<string>
  readonly span: Span
  readonly resumes: Array<(found: Effect.Effect<ReadonlyMap<string, A>>) => void>
}

type Span = Tracer.AnySpan | undefined

/** Runs a statement in the trace of its first caller. */
const inTraceOf = <A, E>(span: Span, statement: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  span?.sampled === true ? Effect.withParentSpan(statement, span) : statement

/** Most ids in one statement, unless the caller sets fewer. */
const usualIdsMax = 500
/** Most statements in flight; later callers share the next one. */
const inFlightMax = 2
/**
 * Most writes in flight while at least `fullBatch` requests wait: Postgres works on some while this process
 * prepares the next. A write for ten rows costs little more for each than one for a hundred.
 */
const fullInFlightMax = 4
const fullBatch = 12

/**
 * Queues of waiting batches, by environment. The reader serves them round robin; each environment
 * keeps its order.
 */
class ReadQueues<A> {
  readonly #queues = new Map<string, Array<ReadBatch<A>>>()
  readonly #idsMax: number

  constructor(idsMax: number) {
    this.#idsMax = idsMax
  }

  /** Returns the batch for more ids of an environment. */
  open(environmentId: string, ids: number, span: Span): ReadBatch<A> {
    const queue = this.#queues.get(environmentId) ?? []
    const last = queue.at(-1)
    if (last !== undefined && last.ids.length + ids <= this.#idsMax) return last
    const batch: ReadBatch<A> = { ids: [], span, resumes: [] }
    this.#queues.set(environmentId, [...queue, batch])
    return batch
  }

  /** Removes the next batch. */
  take(): readonly [environmentId: string, batch: ReadBatch<A>] | undefined {
    for (const [environmentId, queue] of this.#queues) {
      this.#queues.delete(environmentId)
      const [batch, ...rest] = queue
      if (rest.length > 0) this.#queues.set(environmentId, rest)
      if (batch !== undefined) return [environmentId, batch]
    }
    return undefined
  }
}

/** The same look-up in batches. The map may hold more rows than the caller has asked for. */
export const batchReads = Effect.fnUntraced(function* <A>(find: Find<A>, idsMax = usualIdsMax) {
  const scope = yield* Effect.scope
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const queues = new ReadQueues<A>(idsMax)
  let inFlight = 0

  const work = Effect.gen(function* () {
    yield* Effect.yieldNow
    for (let next = queues.take(); next !== undefined; next = queues.take()) {
      const [environmentId, { ids, resumes, span }] = next
      const statement = Effect.suspend(() => find(environmentId, ids))
      const found = yield* Effect.exit(inTraceOf(span, statement))
      for (const resume of resumes) resume(found)
    }
    // In the same step in which nothing was left: nobody relies on this fiber from here on.
    inFlight -= 1
  })

  const batched: Find<A> = (environmentId, ids) =>
    Effect.withFiber(({ cache }) =>
      Effect.callback((resume) => {
        const batch = queues.open(environmentId, ids.length, cache.span)
        batch.ids.push(...ids)
        batch.resumes.push(resume)
        if (inFlight >= inFlightMax) return
        inFlight += 1
        runFork(Effect.forkIn(work, scope))
      })
    )
  return batched
})

/** Conversion of requests to statements. */
export interface Writing<Request, Result> {
  /** The owner of the written rows. */
  readonly ownerOf: (request: Request) => string
  /** The environment of the request. The next statement takes requests of environments round robin. */
  readonly tenantOf?: (request: Request) => string
  /** Size of the request in characters. */
  readonly sizeOf: (request: Request) => number
  /** Writes one request. */
  readonly single: (request: Request) => Effect.Effect<Result>
  /** Writes many; results by owner, or `refused` if the database rejected the whole statement. */
  readonly batch: (
    requests: ReadonlyArray<Request>
  ) => Effect.Effect<ReadonlyMap<string, Result> | "refused">
}

interface Waiting<Request, Result> {
  readonly request: Request
  readonly span: Span
  readonly resume: (result: Effect.Effect<Result>) => void
}

/** Most requests in one statement, however many wait, and their most characters. */
const requestsMax = 100
const sizeMax = 1_000_000
/** Number of requests of a refused batch that are retried at a time. */
const singlesMax = 5

const oneByOne = <Request, Result>(
  { single }: Writing<Request, Result>,
  batch: ReadonlyArray<Waiting<Request, Result>>
) =>
  Effect.forEach(batch, ({ request, resume }) => Effect.map(Effect.exit(single(request)), resume), {
    concurrency: singlesMax,
    discard: true
  })

/** Merges the queues of all tenants round robin; each keeps its order. */
const roundRobin = <A>(
  waiting: ReadonlyArray<A>,
  tenantOf: (each: A) => string
): ReadonlyArray<A> => {
  let queues = [...Map.groupBy(waiting, tenantOf).values()]
  if (queues.length < 2) return waiting
  const merged: Array<A> = []
  for (let index = 0; queues.length > 0; index++) {
    for (const queue of queues) merged.push(...queue.slice(index, index + 1))
    // Only the queues that are left: one long queue beside a thousand short ones would block the event loop.
    queues = queues.filter(({ length }) => length > index + 1)
  }
  return merged
}

/**
 * Splits the queue into the next batch, in order of arrival for each tenant, and the rest. An owner whose
 * write is in flight waits for it here, rather than on a connection that waits for the row.
 */
const splitQueue = <Request, Result>(
  { ownerOf, sizeOf, tenantOf }: Writing<Request, Result>,
  waiting: ReadonlyArray<Waiting<Request, Result>>,
  ownersInFlight: ReadonlySet<string>
) => {
  const owners = new Set<string>()
  const taken: Array<Waiting<Request, Result>> = []
  const left: Array<Waiting<Request, Result>> = []
  let size = 0
  const batchMax = Math.min(requestsMax, Math.max(fullBatch, waiting.length / fullInFlightMax))
  const inOrder =
    tenantOf === undefined ? waiting : roundRobin(waiting, ({ request }) => tenantOf(request))
  for (const each of inOrder) {
    const owner = ownerOf(each.request)
    const fits = taken.length < batchMax && size + sizeOf(each.request) <= sizeMax
    if (owners.has(owner) || ownersInFlight.has(owner) || (!fits && taken.length > 0)) {
      left.push(each)
      continue
    }
    owners.add(owner)
    size += sizeOf(each.request)
    taken.push(each)
  }
  return { taken, left }
}

/** The same write in batches. A batch serves many callers, so never use it within a transaction. */
export const batchWrites = Effect.fnUntraced(function* <Request, Result>(
  writing: Writing<Request, Result>
) {
  const { ownerOf } = writing
  const scope = yield* Effect.scope
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const ownersInFlight = new Set<string>()
  let waiting: Array<Waiting<Request, Result>> = []
  let inFlight = 0

  const write = Effect.fnUntraced(function* (batch: ReadonlyArray<Waiting<Request, Result>>) {
    if (batch.length === 1) return yield* oneByOne(writing, batch)
    const requests = batch.map(({ request }) => request)
    const exit = yield* Effect.exit(Effect.suspend(() => writing.batch(requests)))
    if (Exit.isFailure(exit)) {
      for (const { resume } of batch) resume(Effect.failCause(exit.cause))
      return
    }
    if (exit.value === "refused") return yield* oneByOne(writing, batch)
    for (const { request, resume } of batch) {
      const found = exit.value.get(ownerOf(request))
      resume(
        found === undefined
          ? Effect.die("Failed to find the result of a write")
          : Effect.succeed(found)
      )
    }
  })

  /** The next batch; undefined if nothing waits, or only owners with a write in flight, whose end takes it. */
  const take = () => {
    const { left, taken } = splitQueue(writing, waiting, ownersInFlight)
    waiting = left
    return taken.length === 0 ? undefined : taken
  }

  const work = Effect.gen(function* () {
    yield* Effect.yieldNow
    for (let batch = take(); batch !== undefined; batch = take()) {
      const owners = batch.map(({ request }) => ownerOf(request))
      for (const owner of owners) ownersInFlight.add(owner)
      yield* inTraceOf(batch[0]?.span, write(batch))
      for (const owner of owners) ownersInFlight.delete(owner)
    }
    // In the same step in which nothing was left, as above.
    inFlight -= 1
  })

  return (request: Request): Effect.Effect<Result> =>
    Effect.withFiber(({ cache }) =>
      Effect.callback((resume) => {
        waiting.push({ request, span: cache.span, resume })
        const inFlightLimit = waiting.length < fullBatch ? inFlightMax : fullInFlightMax
        if (inFlight >= inFlightLimit) return
        inFlight += 1
        runFork(Effect.forkIn(work, scope))
      })
    )
})
