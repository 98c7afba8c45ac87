/** Work that a node does for all of its players at once grows with their number, not with its square. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import {
  applyAllConfigs,
  applyAllPlayers,
  fillNode,
  type NodeSize,
  RegistriesLive
} from "../support/full-node.ts"

const small: NodeSize = { environments: 10, connections: 100, rooms: 20 }
const large: NodeSize = { environments: 100, connections: 1000, rooms: 200 }

/** How often a connection or a room is looked at while the effect runs on a node of this size. */
const looksOf = <E, R>(size: NodeSize, act: (size: NodeSize) => Effect.Effect<void, E, R>) =>
  Effect.gen(function* () {
    const { looks } = yield* fillNode(size)
    yield* act(size)
    return looks.count
  }).pipe(Effect.provide(RegistriesLive))

/** Asserts that ten times as much on a node takes ten times as many looks. */
const assertLinear = <E, R>(act: (size: NodeSize) => Effect.Effect<void, E, R>) =>
  Effect.gen(function* () {
    const few = yield* looksOf(small, act)
    const many = yield* looksOf(large, act)
    assert.isAbove(few, 0)
    assert.isAtMost(many / few, 10, `${few} looks became ${many}`)
  })

describe("a node with many connections and rooms", () => {
  it.live("looks at each connection and room once when any player may have changed", () =>
    assertLinear(() => applyAllPlayers)
  )

  it.live("looks at each connection and room once when any config may have changed", () =>
    assertLinear((size) => applyAllConfigs(size, true))
  )

  it.live("looks at each connection and room once when all rooms close", () =>
    assertLinear((size) => applyAllConfigs(size, false))
  )

  it.live("closes all rooms of environments without multiplayer", () =>
    Effect.gen(function* () {
      const { rooms } = yield* fillNode(small)
      yield* applyAllConfigs(small, false)
      assert.isTrue(rooms.every(({ state }) => state?.closed === "feature_disabled"))
    }).pipe(Effect.provide(RegistriesLive))
  )
})
