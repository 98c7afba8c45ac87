/**
 * Which runners are alive. The library lets one runner of the cluster check all others; when that one
 * dies, nobody notices until its entry in the list is five seconds old. So each runner also watches
 * the two that follow it in the list: every runner has two others that look after it, whoever dies,
 * and the work does not grow with the cluster.
 */
import { connect } from "node:net"
import { Effect, Layer, Option, Schedule } from "effect"
import {
  type RunnerAddress,
  RunnerHealth,
  Runners,
  RunnerStorage,
  ShardingConfig
} from "effect/cluster"
import { Neighbours } from "./lines.ts"

const watchMillis = 200
const watched = 2
const connectMillis = 1000
/** How often a runner is asked that has not been heard, and how long it has for the answer. */
const pings = {
  unknown: { millis: 1000, again: 1 },
  /** It has left heartbeats without an answer already. */
  silent: { millis: 1500, again: 0 }
} as const

/** Does the machine say that nothing listens there? That is quick and certain; silence is neither. */
const isRefused = ({ host, port }: RunnerAddress.RunnerAddress): Effect.Effect<boolean> =>
  Effect.callback((resume) => {
    const socket = connect({ host, port, timeout: connectMillis })
    const answer = (refused: boolean) => () => {
      socket.destroy()
      resume(Effect.succeed(refused))
    }
    socket.once("connect", answer(false))
    socket.once("timeout", answer(false))
    socket.once("error", (error) => answer("code" in error && error.code === "ECONNREFUSED")())
    return Effect.sync(() => socket.destroy())
  })

/**
 * A runner whose line answers lives. One that does not is dead when its machine refuses a connection,
 * or when pings go unanswered.
 */
export const HealthLive = Layer.effect(
  RunnerHealth.RunnerHealth,
  Effect.gen(function* () {
    const neighbours = yield* Neighbours
    const runners = yield* Runners.Runners
    return RunnerHealth.RunnerHealth.of({
      isAlive: Effect.fnUntraced(function* (address) {
        const heard = neighbours.heard(address)
        if (heard === "lives") return true
        if (yield* isRefused(address)) return false
        const { again, millis } = pings[heard]
        return yield* runners
          .ping(address)
          .pipe(Effect.timeout(millis), Effect.retry({ times: again }), Effect.isSuccess)
      })
    })
  })
)

/** Those that follow an address in the list, which is a ring. */
export const neighboursOf = <Address extends { toString(): string }>(
  self: Address,
  addresses: ReadonlyArray<Address>
): ReadonlyArray<Address> => {
  const ring = addresses.toSorted((a, b) => (a.toString() < b.toString() ? -1 : 1))
  const after = ring.filter((address) => address.toString() > self.toString())
  const before = ring.filter((address) => address.toString() < self.toString())
  return [...after, ...before].slice(0, watched)
}

/** Reports neighbours that are dead; the one that checks all brings back those that live again. */
const lookAround = Effect.fnUntraced(function* (self: RunnerAddress.RunnerAddress) {
  const storage = yield* RunnerStorage.RunnerStorage
  const health = yield* RunnerHealth.RunnerHealth
  const listed = yield* storage.getRunners
  const healthy = listed.filter(([, isHealthy]) => isHealthy).map(([{ address }]) => address)
  yield* Effect.forEach(
    neighboursOf(self, healthy),
    Effect.fnUntraced(function* (address) {
      if (yield* health.isAlive(address)) return
      yield* Effect.logInfo("A runner is gone; its shards move", `${address.host}:${address.port}`)
      yield* storage.setRunnerHealth(address, false)
    }),
    { concurrency: watched, discard: true }
  )
})

/** Watches the neighbours for as long as the runner runs. */
export const NeighbourWatch = Layer.effectDiscard(
  Effect.gen(function* () {
    const { runnerAddress } = yield* ShardingConfig.ShardingConfig
    if (Option.isNone(runnerAddress)) return
    yield* lookAround(runnerAddress.value).pipe(
      Effect.catchCause((cause) => Effect.logDebug("The other runners could not be seen", cause)),
      Effect.repeat(Schedule.spaced(watchMillis)),
      Effect.forkScoped
    )
  })
)
