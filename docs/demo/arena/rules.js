/**
 * The rules of Star rush: functions of the state of the room, which return changes of it. The page of the
 * host makes these changes. The first player with `goal` stars wins the round.
 */

export const world = { width: 1600, height: 900 }
export const radius = 26
export const starCount = 5
/** Stars that win a round. */
export const goal = 10
/** Time between two rounds. */
export const pauseMillis = 6000
/** World pixels a second. */
const speed = 420

const random = (max) => Math.round(radius * 2 + Math.random() * (max - radius * 4))
export const randomPlace = () => ({ x: random(world.width), y: random(world.height) })

export const distance = (a, b) => Math.hypot(a.x - b.x, a.y - b.y)
export const near = (a, b) => distance(a, b) < radius * 1.8

const starKeys = Array.from({ length: starCount }, (_, n) => `star${n}`)

/** The stars that can be collected, by their keys in the state. */
export const starsOf = (state) =>
  state.winner === undefined
    ? starKeys.filter((key) => state[key]).map((key) => [key, state[key]])
    : []

/** A star at another place. Its number says which star a report means. */
const nextStar = (star) => ({ ...randomPlace(), number: (star?.number ?? 0) + 1 })

/** Returns the start of a round if it is due: there was none yet, or the pause after the last one is over. */
export const nextRound = (state, now) => {
  const isDue = state.scores === undefined || (state.winner !== undefined && now >= state.nextAt)
  if (!isDue) return undefined
  const stars = starKeys.map((key) => [key, nextStar(state[key])])
  return { ...Object.fromEntries(stars), scores: {}, winner: null, nextAt: null }
}

/**
 * Returns the change by a player's report to be at a star; undefined if another one was faster. A report may
 * hold anything, since any page can send one.
 */
export const collect = (state, player, report, now) => {
  const found = starsOf(state).find(
    ([key, star]) => key === report?.key && star.number === report.number
  )
  if (found === undefined || player === undefined) return undefined
  const [key, star] = found
  const { displayName, id } = player
  const score = (state.scores[id] ?? 0) + 1
  const isWon = score >= goal
  return {
    [key]: nextStar(star),
    scores: { ...state.scores, [id]: score },
    // The name stays when the winner leaves.
    ...(isWon ? { winner: { id, displayName }, nextAt: now + pauseMillis } : {})
  }
}

const clamp = (value, max) => Math.min(max - radius, Math.max(radius, value))

/** Moves a ship into a direction; `part` is that of the full speed. */
export const move = (ship, [dx, dy], seconds, part = 1) => {
  const length = Math.hypot(dx, dy)
  if (length === 0) return
  const way = speed * part * seconds
  ship.x = clamp(ship.x + (dx / length) * way, world.width)
  ship.y = clamp(ship.y + (dy / length) * way, world.height)
}
