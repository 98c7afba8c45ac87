/** When the row of an entity that lives nowhere is overdue, for the sweepers. */

/** Interval at which an active entity is written even without changes. */
export const refreshMillis = 60_000

/**
 * When an entity that is written now should have been written again, Unix milliseconds: two to three
 * refresh intervals ahead. Moves in steps of one interval, because the column is indexed and Postgres
 * updates no index for a write that leaves it unchanged. The steps count from the creation of the
 * entity, so that entities do not step together.
 */
export const overdueAt = (createdAt: number, now: number): number => {
  const age = now + 2 * refreshMillis - createdAt
  return createdAt + Math.ceil(age / refreshMillis) * refreshMillis
}
