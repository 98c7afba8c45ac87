/** Players who ask for a match shortly after each other, over real sockets. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { at, configure, newPlayer, type OnlinePlayer, type TestTarget } from "#testing/players"

/** Milliseconds between the first player of a pair and the second. */
export const gaps = [0, 10, 50, 200]

const modes = [
  { key: "pair_1", minPlayers: 1, maxPlayers: 2 },
  { key: "pair_2", minPlayers: 2, maxPlayers: 2 },
  { key: "eight", minPlayers: 1, maxPlayers: 8 }
]

/** Config with the modes of these tests. */
export const configureModes = (target: TestTarget) =>
  configure(target, { version: 1, features: { multiplayer: true }, multiplayer: { modes } })

const quickMatch = Effect.fnUntraced(function* ({ socket }: OnlinePlayer, mode: string) {
  const reply = yield* socket.request({ t: "quickMatch", mode })
  assert.strictEqual(at(reply, "ok"), true, JSON.stringify(reply))
  return String(at(reply, "data", "roomId"))
})

const leave = ({ socket }: OnlinePlayer) => socket.request({ t: "leave" })

/** So many pairs of each kind; the first player is on one target, the second on the other. */
export const matchPairs = Effect.fnUntraced(function* (
  [first, second]: readonly [TestTarget, TestTarget],
  pairs: number
) {
  const ada = yield* newPlayer(first)
  const bob = yield* newPlayer(second)
  const split: Array<string> = []
  for (const mode of ["pair_1", "pair_2"]) {
    for (const apart of gaps) {
      for (let pair = 0; pair < pairs; pair++) {
        const later = Effect.delay(quickMatch(bob, mode), apart)
        const rooms = yield* Effect.all([quickMatch(ada, mode), later], { concurrency: 2 })
        if (rooms[0] !== rooms[1]) split.push(`${mode}, ${apart} ms apart`)
        yield* Effect.all([leave(ada), leave(bob)], { concurrency: 2 })
      }
    }
  }
  assert.deepStrictEqual(split, [])
})

/** 100 players who ask at once for rooms of eight. */
export const matchBurst = Effect.fnUntraced(function* (targets: ReadonlyArray<TestTarget>) {
  const players = yield* Effect.forEach(
    Array.from({ length: 100 }, (_, i) => targets[i % targets.length]),
    (target) => (target === undefined ? Effect.die("No target") : newPlayer(target)),
    { concurrency: 8 }
  )
  const rooms = yield* Effect.forEach(players, (player) => quickMatch(player, "eight"), {
    concurrency: "unbounded"
  })
  const sizes = Array.from(Map.groupBy(rooms, (room) => room).values(), ({ length }) => length)
  assert.lengthOf(sizes, 13)
  assert.isAtMost(Math.max(...sizes), 8)
})
