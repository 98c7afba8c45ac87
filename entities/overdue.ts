/** Time at which the row of an entity without an activation is overdue, for the sweepers. */

/** Interval at which an active entity is written even without changes. */
export const refreshMillis = 60_000

/**
 * Returns the time at which the row of an entity that is written now becomes overdue, Unix
 * milliseconds: two to three refresh intervals ahead. The time moves in steps of one interval: the
 * column is indexed, and Postgres updates no index for an unchanged value. The steps count from the
 * creation of the entity, so that entities do not step together.
 */
export const overdueAt = (createdAt: number, now: number): number => {
  const age = now + 2 * refreshMillis - createdAt
  return createdAt + Math.ceil(age / refreshMillis) * refreshMillis
}
