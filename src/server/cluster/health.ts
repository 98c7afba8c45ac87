/**
 * Which runners are alive. The library lets one runner of the cluster check all others; when that one
 * dies, nobody notices until its entry in the list is five seconds old. So each runner also watches
 * the two that follow it in the list: every runner has two others that look after it, whoever dies,
 * and the work does not grow with the cluster.
 */
import { connect } from "node:net"
import { type Cause, Context, Effect, FiberMap, Layer, Option, Schedule } from "effect"
import {
  type RunnerAddress,
  RunnerHealth,
  Runners,
  RunnerStorage,
  ShardingConfig
} from "effect/cluster"
import { Membership } from "./membership.ts"
import { PeerRunners } from "./runner-links.ts"

const watchMillis = 200
const watched = 2
/** How long the word of those who see it otherwise may take. */
const objectionMillis = 500
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

/** What this runner knows of another by itself. */
export class FailureDetector extends Context.Service<
  FailureDetector,
  {
    /** It answers; nothing is there any more; or there is silence, which may be anybody's fault. */
    readonly of: (
      address: RunnerAddress.RunnerAddress
    ) => Effect.Effect<"answers" | "gone" | "silent">
  }
>()("server/cluster/health/Hearing") {}

/**
 * A runner whose line answers is there. One that does not is gone when its machine refuses a
 * connection, and silent when pings go unanswered.
 */
export const FailureDetectorLive = Layer.effect(
  FailureDetector,
  Effect.gen(function* () {
    const neighbours = yield* PeerRunners
    const runners = yield* Runners.Runners
    return FailureDetector.of({
      of: Effect.fnUntraced(function* (address) {
        const heard = neighbours.status(address)
        if (heard === "lives") return "answers"
        if (yield* isRefused(address)) return "gone"
        const { again, millis } = pings[heard]
        const answered = yield* runners
          .ping(address)
          .pipe(Effect.timeout(millis), Effect.retry({ times: again }), Effect.isSuccess)
        return answered ? "answers" : "silent"
      })
    })
  })
)

/** A runner lives as long as it is not gone, nor out for all. */
export const HealthLive = Layer.effect(
  RunnerHealth.RunnerHealth,
  Effect.gen(function* () {
    const hearing = yield* FailureDetector
    const suspicions = yield* Membership
    return RunnerHealth.RunnerHealth.of({
      isAlive: (address) =>
        Effect.map(
          hearing.of(address),
          (heard) => heard !== "gone" && !suspicions.isEvicted(address)
        )
    })
  })
)

/** Those that follow an address in the list, which is a ring. */
export const ringNeighboursOf = <Address extends { toString(): string }>(
  self: Address,
  addresses: ReadonlyArray<Address>
): ReadonlyArray<Address> => {
  const ring = addresses.toSorted((a, b) => (a.toString() < b.toString() ? -1 : 1))
  const after = ring.filter((address) => address.toString() > self.toString())
  const before = ring.filter((address) => address.toString() < self.toString())
  return [...after, ...before].slice(0, watched)
}

/**
 * Looks after a runner. One that is silent is suspected, for as long as it is so; it is reported as
 * dead when everybody had the time to object and it is out. One that is gone is reported at once.
 */
const lookAfter = Effect.fnUntraced(function* (
  address: RunnerAddress.RunnerAddress,
  isHealthy: boolean,
  wasSilent: boolean
) {
  const storage = yield* RunnerStorage.RunnerStorage
  const suspicions = yield* Membership
  const heard = yield* (yield* FailureDetector).of(address)
  if (heard === "silent") {
    yield* suspicions.report(address, heard)
    yield* Effect.sleep(objectionMillis)
  }
  if (heard !== "silent" && (wasSilent || suspicions.suspectsSelf(address))) {
    yield* suspicions.report(address, heard)
  }
  if (heard !== "answers" && isHealthy && (heard === "gone" || suspicions.isEvicted(address))) {
    yield* Effect.logInfo("A runner is gone; its shards move", `${address.host}:${address.port}`)
    yield* storage.setRunnerHealth(address, false)
  }
  return heard === "silent"
})

const quietly = Effect.catchCause((cause: Cause.Cause<unknown>) =>
  Effect.logDebug("The other runners could not be seen", cause)
)

/**
 * Looks after neighbours, and after those that were silent before or do not hear this runner. The one
 * that checks all revives them.
 */
const lookAround = Effect.fnUntraced(function* (
  self: RunnerAddress.RunnerAddress,
  silent: Set<string>,
  looking: FiberMap.FiberMap<string>
) {
  const storage = yield* RunnerStorage.RunnerStorage
  const suspicions = yield* Membership
  const listed = yield* storage.getRunners
  const healthy = listed.filter(([, isHealthy]) => isHealthy).map(([{ address }]) => address)
  const neighbours = ringNeighboursOf(self, healthy)
  for (const [{ address }, isHealthy] of listed) {
    const name = address.toString()
    const concerns = silent.has(name) || suspicions.suspectsSelf(address)
    if (!neighbours.includes(address) && !concerns) continue
    // A silent one takes its time, which the others do not wait for.
    const look = Effect.map(lookAfter(address, isHealthy, silent.has(name)), (isSilent) => {
      if (isSilent) silent.add(name)
      else silent.delete(name)
    })
    yield* FiberMap.run(looking, name, quietly(look), { onlyIfMissing: true })
  }
})

/** Watches the neighbours for as long as the runner runs. */
export const HealthMonitor = Layer.effectDiscard(
  Effect.gen(function* () {
    const { runnerAddress } = yield* ShardingConfig.ShardingConfig
    if (Option.isNone(runnerAddress)) return
    const looking = yield* FiberMap.make<string>()
    yield* quietly(lookAround(runnerAddress.value, new Set(), looking)).pipe(
      Effect.repeat(Schedule.spaced(watchMillis)),
      Effect.forkScoped
    )
  })
)
