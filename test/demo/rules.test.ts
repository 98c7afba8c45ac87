/** The rules of Star rush: rounds with a goal and an end, and reports that a page may forge. */
import { assert, describe, it } from "@effect/vitest"

interface Star {
  readonly x: number
  readonly y: number
  readonly number: number
}

type State = Readonly<Record<string, unknown>>

interface Rules {
  readonly goal: number
  readonly pauseMillis: number
  readonly starsOf: (state: State) => ReadonlyArray<readonly [string, Star]>
  readonly nextRound: (state: State, now: number) => State | undefined
  readonly collect: (
    state: State,
    player: { readonly id: string; readonly displayName: string } | undefined,
    report: unknown,
    now: number
  ) => State | undefined
}

const rules: Rules = await import(new URL("../../docs/demo/arena/rules.js", import.meta.url).href)

const ada = { id: "pl_ada", displayName: "Ada" }

/** Merges a change as a room does: null deletes a key. */
const merge = (state: State, patch: State | undefined): State =>
  Object.fromEntries(Object.entries({ ...state, ...patch }).filter(([, value]) => value !== null))

const firstRound = merge({}, rules.nextRound({}, 0))

const reportOf = (state: State) =>
  rules.starsOf(state).map(([key, { number }]) => ({ key, number }))[0]

/** The state after a player has collected this many stars. */
const after = (stars: number, start = firstRound): State =>
  Array.from({ length: stars }).reduce<State>(
    (state) => merge(state, rules.collect(state, ada, reportOf(state), 1000)),
    start
  )

describe("Star rush", () => {
  it("ends a round when a player has the stars that win it, and keeps the winner's name", () => {
    assert.isUndefined(after(rules.goal - 1)["winner"])
    const won = after(rules.goal)
    assert.deepStrictEqual(won["winner"], ada)
    assert.strictEqual(won["nextAt"], 1000 + rules.pauseMillis)
    assert.deepStrictEqual(rules.starsOf(won), [])
  })

  it("begins the next round without points after the pause, and not before", () => {
    const won = after(rules.goal)
    const due = 1000 + rules.pauseMillis
    assert.isUndefined(rules.nextRound(won, due - 1))
    const next = merge(won, rules.nextRound(won, due))
    assert.deepStrictEqual(next["scores"], {})
    assert.isUndefined(next["winner"])
    assert.lengthOf(rules.starsOf(next), 5)
    assert.isUndefined(rules.nextRound(next, due * 2))
  })

  it("gives a star once, also to a report of the round before", () => {
    const report = reportOf(firstRound)
    const taken = merge(firstRound, rules.collect(firstRound, ada, report, 0))
    assert.isUndefined(rules.collect(taken, ada, report, 0))
    const won = after(rules.goal)
    const next = merge(won, rules.nextRound(won, 1e9))
    assert.isUndefined(rules.collect(next, ada, report, 0))
  })

  it.each([null, 1, {}, { key: "scores" }, { key: "star0" }, { key: "winner", number: 1 }])(
    "ignores the forged report %o",
    (report) => {
      assert.isUndefined(rules.collect(firstRound, ada, report, 0))
    }
  )

  it("ignores the report of a player who has left", () => {
    assert.isUndefined(rules.collect(firstRound, undefined, reportOf(firstRound), 0))
  })
})
