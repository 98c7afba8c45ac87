/**
 * Sweeper of entities whose row is overdue and that no node runs. It wakes a page of rows at a
 * time.
 */
import { Effect } from "effect"

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
