/**
 * Statements that arrive in the same turn of the event loop, or while earlier ones are under way, as
 * one: look-ups by id, and writes, of which an owner has one in a statement and the next in the next.
 * A statement costs about as much for one row as for fifty, and so does a commit.
 */
import { Effect, Exit, Semaphore, type Tracer } from "effect"

/** Finds rows of an environment by id; ids without a row are missing. */
export type Find<A> = (
  environmentId: string,
  ids: ReadonlyArray<string>
) => Effect.Effect<ReadonlyMap<string, A>>

/** What is looked up next. */
interface Load<A> {
  readonly ids: Array<string>
  readonly answers: Array<(found: Effect.Effect<ReadonlyMap<string, A>>) => void>
}

type Span = Tracer.AnySpan | undefined

/** A statement belongs to the trace of whoever came first. */
const inTraceOf = <A, E>(span: Span, statement: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  span?.sampled === true ? Effect.withParentSpan(statement, span) : statement

/** Ids of one statement; more leave in another. */
const idsMax = 500
/** Statements under way; those who come meanwhile share the next. */
const underWayMax = 2

/** The same look-up, gathered. What it finds may be more than was asked for. */
export const batchReads = Effect.fnUntraced(function* <A>(find: Find<A>) {
  const scope = yield* Effect.scope
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const underWay = yield* Semaphore.make(underWayMax)
  const gathering = new Map<string, Load<A>>()

  const leave = Effect.fnUntraced(function* (environmentId: string, load: Load<A>) {
    if (gathering.get(environmentId) === load) gathering.delete(environmentId)
    const found = yield* Effect.exit(find(environmentId, load.ids))
    for (const answer of load.answers) answer(found)
  })

  const begin = (environmentId: string, span: Span): Load<A> => {
    const load: Load<A> = { ids: [], answers: [] }
    gathering.set(environmentId, load)
    const leaving = underWay.withPermits(1)(Effect.suspend(() => leave(environmentId, load)))
    const begun = Effect.andThen(Effect.yieldNow, inTraceOf(span, leaving))
    runFork(Effect.forkIn(begun, scope))
    return load
  }

  const gathered: Find<A> = (environmentId, ids) =>
    Effect.withFiber(({ cache }) =>
      Effect.callback((resume) => {
        const open = gathering.get(environmentId)
        const fits = open !== undefined && open.ids.length + ids.length <= idsMax
        const load = fits ? open : begin(environmentId, cache.span)
        load.ids.push(...ids)
        load.answers.push(resume)
      })
    )
  return gathered
})

/** How requests become statements. */
export interface Writing<Request, Answer> {
  /** Whose rows are written. */
  readonly ownerOf: (request: Request) => string
  /** How large the request is, in characters. */
  readonly sizeOf: (request: Request) => number
  readonly alone: (request: Request) => Effect.Effect<Answer>
  /** The answers by owner; `refused` when the database took none of them, for the sake of some. */
  readonly together: (
    requests: ReadonlyArray<Request>
  ) => Effect.Effect<ReadonlyMap<string, Answer> | "refused">
}

interface Waiting<Request, Answer> {
  readonly request: Request
  readonly span: Span
  readonly answer: (answer: Effect.Effect<Answer>) => void
}

/** Requests of one statement, and their size; more leave in another. */
const requestsMax = 100
const sizeMax = 1_000_000
/** After a refusal, requests of a statement that are tried at once. */
const aloneMax = 5

const oneByOne = <Request, Answer>(
  { alone }: Writing<Request, Answer>,
  batch: ReadonlyArray<Waiting<Request, Answer>>
) =>
  Effect.forEach(batch, ({ answer, request }) => Effect.map(Effect.exit(alone(request)), answer), {
    concurrency: aloneMax,
    discard: true
  })

/** The same write, gathered. It is nobody's own: never for use within a transaction. */
export const batchWrites = Effect.fnUntraced(function* <Request, Answer>(
  writing: Writing<Request, Answer>
) {
  const { ownerOf, sizeOf, together } = writing
  const scope = yield* Effect.scope
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  let waiting: Array<Waiting<Request, Answer>> = []
  let underWay = 0

  /** The next statement's share of what waits, in the order of its coming. */
  const take = (): ReadonlyArray<Waiting<Request, Answer>> => {
    const owners = new Set<string>()
    const taken: Array<Waiting<Request, Answer>> = []
    const left: Array<Waiting<Request, Answer>> = []
    let size = 0
    for (const each of waiting) {
      const owner = ownerOf(each.request)
      const fits = taken.length < requestsMax && size + sizeOf(each.request) <= sizeMax
      if (owners.has(owner) || (!fits && taken.length > 0)) {
        left.push(each)
        continue
      }
      owners.add(owner)
      size += sizeOf(each.request)
      taken.push(each)
    }
    waiting = left
    return taken
  }

  const write = Effect.fnUntraced(function* (batch: ReadonlyArray<Waiting<Request, Answer>>) {
    if (batch.length === 1) return yield* oneByOne(writing, batch)
    const exit = yield* Effect.exit(together(batch.map(({ request }) => request)))
    if (Exit.isFailure(exit)) {
      for (const { answer } of batch) answer(Effect.failCause(exit.cause))
      return
    }
    if (exit.value === "refused") return yield* oneByOne(writing, batch)
    for (const { answer, request } of batch) {
      const found = exit.value.get(ownerOf(request))
      answer(found === undefined ? Effect.die("a write has no answer") : Effect.succeed(found))
    }
  })

  const work = Effect.gen(function* () {
    yield* Effect.yieldNow
    while (waiting.length > 0) {
      const batch = take()
      yield* inTraceOf(batch[0]?.span, write(batch))
    }
  }).pipe(
    Effect.ensuring(
      Effect.sync(() => {
        underWay -= 1
      })
    )
  )

  return (request: Request): Effect.Effect<Answer> =>
    Effect.withFiber(({ cache }) =>
      Effect.callback((resume) => {
        waiting.push({ request, span: cache.span, answer: resume })
        if (underWay >= underWayMax) return
        underWay += 1
        runFork(Effect.forkIn(work, scope))
      })
    )
})
