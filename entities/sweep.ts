/**
 * Sweeper of entities whose row is overdue and that no node runs: their runner died, and nobody has used
 * them since. It wakes a page of rows at a time. One sweeper per cluster.
 */
import { DateTime, Effect, Schedule } from "effect"
import { Singleton } from "effect/cluster"

const rowsPerSweep = 200
const concurrency = 16

/**
 * Returns a sweep of one page. Rows that could not be woken stay overdue, so the next sweep skips them;
 * after the last page it begins with the first again.
 */
export const makeSweep = <Row, E, R>(
  overdue: (limit: number, skipped: number) => Effect.Effect<ReadonlyArray<Row>, E, R>,
  wake: (row: Row) => Effect.Effect<void, unknown>
): Effect.Effect<void, E, R> => {
  let skipped = 0
  return Effect.gen(function* () {
    const rows = yield* overdue(rowsPerSweep, skipped)
    const woken = yield* Effect.forEach(rows, (row) => Effect.isSuccess(wake(row)), { concurrency })
    const left = woken.filter((isWoken) => !isWoken).length
    skipped = rows.length < rowsPerSweep ? 0 : skipped + left
  })
}

/** Wakes entities whose row was due `lateMillis` ago, again and again. */
export const makeSweeper = <Row, Client, R1, R2>(options: {
  readonly name: string
  /** The entities in logs, in the plural. */
  readonly entities: string
  readonly everyMillis: number
  readonly lateMillis: number
  readonly repository: Effect.Effect<
    {
      readonly overdue: (
        dueBefore: string,
        limit: number,
        skipped: number
      ) => Effect.Effect<ReadonlyArray<Row>>
    },
    never,
    R1
  >
  readonly client: Effect.Effect<Client, never, R2>
  readonly wake: (client: Client, row: Row) => Effect.Effect<void, unknown>
}) =>
  Singleton.make(
    options.name,
    Effect.gen(function* () {
      const repository = yield* options.repository
      const client = yield* options.client
      const sweep = makeSweep(
        (limit, skipped) =>
          Effect.flatMap(DateTime.now, (now) => {
            const due = DateTime.subtract(now, { milliseconds: options.lateMillis })
            return repository.overdue(DateTime.formatIso(due), limit, skipped)
          }),
        (row) => options.wake(client, row)
      )
      yield* sweep.pipe(
        Effect.catchCause((cause) =>
          Effect.logWarning(`Failed to sweep overdue ${options.entities}`, cause)
        ),
        Effect.repeat(Schedule.spaced(options.everyMillis))
      )
    })
  )
