/**
 * Pairs of players who ask for a room of two shortly after each other: how long each waits, and how many
 * pairs get two rooms where one would do.
 */
import { setTimeout as sleep } from "node:timers/promises"
import { type Quantiles, quantilesOf } from "./many/figures.ts"
import { ask, connectPlayer, type Service, signIn } from "./many/service.ts"
import type { LoadSocket } from "./wire/socket.ts"

/** Milliseconds between the first player and the second. */
const gaps = [0, 10, 50, 200]

export const pairModes = [1, 2].map((minPlayers) => ({
  key: `pair_${minPlayers}`,
  minPlayers,
  maxPlayers: 2
}))

/** Times in milliseconds, from when the player asked. */
export interface Pairs {
  readonly mode: string
  readonly apart: number
  readonly pairs: number
  readonly split: number
  readonly first: Quantiles
  readonly second: Quantiles
}

async function timed(socket: LoadSocket, mode: string) {
  const askedAt = performance.now()
  const roomId = await ask(socket, { t: "quickMatch", mode })
  return { roomId, millis: performance.now() - askedAt }
}

async function measure(
  mode: string,
  apart: number,
  pairs: number,
  [ada, bob]: readonly [LoadSocket, LoadSocket]
): Promise<Pairs> {
  const first: Array<number> = []
  const second: Array<number> = []
  let split = 0
  for (let pair = 0; pair < pairs; pair++) {
    const asked = timed(ada, mode)
    if (apart > 0) await sleep(apart)
    const [one, other] = await Promise.all([asked, timed(bob, mode)])
    first.push(one.millis)
    second.push(other.millis)
    if (one.roomId !== other.roomId) split += 1
    await Promise.all([ask(ada, { t: "leave" }), ask(bob, { t: "leave" })])
  }
  return { mode, apart, pairs, split, first: quantilesOf(first), second: quantilesOf(second) }
}

/** Measures so many pairs of each kind, one pair after the other. */
export async function measurePairs(
  { target }: Service,
  pairs: number
): Promise<ReadonlyArray<Pairs>> {
  // A socket that is lost fails the request that waits on it, or the next.
  const events = { onDelivery: () => undefined, onLost: () => undefined }
  const [ada = "", bob = ""] = await signIn(target, 2)
  const sockets = [
    await connectPlayer(target, ada, events),
    await connectPlayer(target, bob, events)
  ] as const
  const measured: Array<Pairs> = []
  for (const { key } of pairModes) {
    await measure(key, 0, 10, sockets)
    for (const apart of gaps) measured.push(await measure(key, apart, pairs, sockets))
  }
  for (const socket of sockets) socket.close()
  return measured
}

export const pairsHeader = [
  "mode",
  "ms apart",
  "pairs",
  "two rooms",
  "first waits p50 ms",
  "second waits p50 ms",
  "second waits p99 ms"
]

export const pairsRows = (measured: ReadonlyArray<Pairs>): ReadonlyArray<Array<string>> =>
  measured.map(({ apart, first, mode, pairs, second, split }) => [
    mode,
    String(apart),
    String(pairs),
    String(split),
    first.p50.toFixed(1),
    second.p50.toFixed(1),
    second.p99.toFixed(1)
  ])

export const pairsProblems = (measured: ReadonlyArray<Pairs>): ReadonlyArray<string> =>
  measured
    .filter(({ split }) => split > 0)
    .map(({ apart, mode, split }) => `${mode}, ${apart} ms apart: ${split} pairs got two rooms`)
