/**
 * The longest piece of the event loop that one process spends on all of its players at once, with the
 * registries of a full node and no sockets. See README.md.
 */
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect, Predicate } from "effect"
import {
  applyAllConfigs,
  applyAllPlayers,
  fillNode,
  type NodeSize,
  RegistriesLive,
  stopAllRooms
} from "../support/full-node.ts"

const size: NodeSize = { environments: 100, connections: 25_000, rooms: 5_000 }

/** CPU milliseconds of this thread: other processes on the machine do not count. */
const cpuMillis = (): number => {
  const { system, user } = process.threadCpuUsage()
  return (system + user) / 1000
}

/** CPU milliseconds of the longest iteration of the event loop while the effect runs. */
const longestOf = <E, R>(act: Effect.Effect<void, E, R>) =>
  Effect.gen(function* () {
    let seenAt = cpuMillis()
    let longest = 0
    let running = true
    const watch = (): void => {
      const now = cpuMillis()
      longest = Math.max(longest, now - seenAt)
      seenAt = now
      if (running) setImmediate(watch)
    }
    setImmediate(watch)
    yield* act
    running = false
    watch()
    return longest
  })

/** Collects the garbage of the set-up, which would count for the first piece. */
const collectGarbage = Effect.sync(() => {
  setFlagsFromString("--expose-gc")
  const gc: unknown = runInNewContext("gc")
  if (Predicate.isFunction(gc)) gc()
})

/** Measures on a fresh node, after a warm-up on a smaller one. */
const report = <E, R>(what: string, act: (size: NodeSize) => Effect.Effect<void, E, R>) =>
  Effect.gen(function* () {
    const onNode = (of: NodeSize) =>
      fillNode(of).pipe(
        Effect.andThen(collectGarbage),
        Effect.andThen(longestOf(act(of))),
        Effect.provide(RegistriesLive)
      )
    yield* onNode({ environments: 10, connections: 2500, rooms: 500 })
    const longest = yield* onNode(size)
    yield* Console.log(`${what}: longest piece ${longest.toFixed(0)} ms`)
  })

NodeRuntime.runMain(
  Effect.gen(function* () {
    const { connections, environments, rooms } = size
    yield* Console.log(`${connections} connections, ${rooms} rooms, ${environments} environments`)
    yield* report("any player may have changed", () => applyAllPlayers)
    yield* report("any config may have changed", (of) => applyAllConfigs(of, true))
    yield* report("all rooms close", (of) => applyAllConfigs(of, false))
    yield* report("all rooms stop", () => stopAllRooms)
  }).pipe(Effect.scoped)
)
