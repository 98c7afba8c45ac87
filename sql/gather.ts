/**
 * Look-ups by id that arrive in the same turn of the event loop, or while earlier ones are under way,
 * as one statement. A statement costs about as much for one row as for fifty.
 */
import { Effect, Semaphore } from "effect"

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

/** Ids of one statement; more leave in another. */
const idsMax = 500
/** Statements under way; those who come meanwhile share the next. */
const underWayMax = 2

/** The same look-up, gathered. What it finds may be more than was asked for. */
export const gather = Effect.fnUntraced(function* <A>(find: Find<A>) {
  const scope = yield* Effect.scope
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const underWay = yield* Semaphore.make(underWayMax)
  const gathering = new Map<string, Load<A>>()

  const leave = Effect.fnUntraced(function* (environmentId: string, load: Load<A>) {
    if (gathering.get(environmentId) === load) gathering.delete(environmentId)
    const found = yield* Effect.exit(find(environmentId, load.ids))
    for (const answer of load.answers) answer(found)
  })

  const begin = (environmentId: string): Load<A> => {
    const load: Load<A> = { ids: [], answers: [] }
    gathering.set(environmentId, load)
    const leaving = underWay.withPermits(1)(Effect.suspend(() => leave(environmentId, load)))
    runFork(Effect.forkIn(Effect.andThen(Effect.yieldNow, leaving), scope))
    return load
  }

  const gathered: Find<A> = (environmentId, ids) =>
    Effect.callback((resume) => {
      const open = gathering.get(environmentId)
      const fits = open !== undefined && open.ids.length + ids.length <= idsMax
      const load = fits ? open : begin(environmentId)
      load.ids.push(...ids)
      load.answers.push(resume)
    })
  return gathered
})
