/**
 * Open-loop schedule: when each message is sent is fixed before the run starts, so a stalled server
 * (or generator) shows up as latency instead of as fewer messages.
 */

export interface Schedule {
  /** The player that sends message `i`. */
  readonly player: (i: number) => number
  /** Its send time in microseconds after the start of the run, growing with `i`. */
  readonly at: (i: number) => number
}

/** Every player sends at `rate` a second, each with a phase of its own drawn from `seed`. */
export function makeSchedule(players: number, rate: number, seed: number): Schedule {
  const random = mulberry32(seed)
  const period = 1_000_000 / rate
  const turns = Array.from({ length: players }, (_, player) => ({
    player,
    phase: random() * period
  })).toSorted((a, b) => a.phase - b.phase)
  return {
    player: (i) => turns[i % players]!.player,
    at: (i) => turns[i % players]!.phase + Math.floor(i / players) * period
  }
}

/** Tommy Ettinger's 32-bit generator: small, seeded, and good enough for phases. */
export function mulberry32(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}
