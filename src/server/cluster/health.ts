/**
 * Failure detector for runners. Effect Cluster lets one runner check all others; when that one dies,
 * nobody notices until its entry in the runner list is five seconds old. So each runner also monitors
 * the two that follow it in the list: every runner has two monitors, whichever one dies, and the work
 * does not grow with the cluster.
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

const probeIntervalMillis = 200
const monitoredNeighbours = 2
/** Time for contrary reports of other runners to arrive before a silent one is declared dead. */
const objectionMillis = 500
const connectMillis = 1000
/** Pings of a runner whose link does not reply: how long each may take, and how many follow. */
const pings = {
  unknown: { millis: 1000, retries: 1 },
  /** Its link has missed heartbeats already. */
  silent: { millis: 1500, retries: 0 }
} as const

/** Whether the machine refuses a connection: quick and certain evidence that the process is gone. */
const isRefused = ({ host, port }: RunnerAddress.RunnerAddress): Effect.Effect<boolean> =>
  Effect.callback((resume) => {
    const socket = connect({ host, port, timeout: connectMillis })
    const finish = (refused: boolean) => () => {
      socket.destroy()
      resume(Effect.succeed(refused))
    }
    socket.once("connect", finish(false))
    socket.once("timeout", finish(false))
    socket.once("error", (error) => finish("code" in error && error.code === "ECONNREFUSED")())
    return Effect.sync(() => socket.destroy())
  })

/** This runner's own observation of another, without the reports of others. */
export class FailureDetector extends Context.Service<
  FailureDetector,
  {
    /** `answers`: it is alive. `gone`: its process has ended. `silent`: no reply, for any reason. */
    readonly of: (
      address: RunnerAddress.RunnerAddress
    ) => Effect.Effect<"answers" | "gone" | "silent">
  }
>()("server/cluster/health/FailureDetector") {}

/**
 * A runner whose link is alive answers. Otherwise it is gone when its machine refuses a connection,
 * and silent when it does not answer pings.
 */
export const FailureDetectorLive = Layer.effect(
  FailureDetector,
  Effect.gen(function* () {
    const peers = yield* PeerRunners
    const runners = yield* Runners.Runners
    return FailureDetector.of({
      of: Effect.fnUntraced(function* (address) {
        const status = peers.status(address)
        if (status === "alive") return "answers"
        if (yield* isRefused(address)) return "gone"
        const { millis, retries } = pings[status]
        const replied = yield* runners
          .ping(address)
          .pipe(Effect.timeout(millis), Effect.retry({ times: retries }), Effect.isSuccess)
        return replied ? "answers" : "silent"
      })
    })
  })
)

/** A runner is alive unless it is gone, or evicted by all. */
export const HealthLive = Layer.effect(
  RunnerHealth.RunnerHealth,
  Effect.gen(function* () {
    const detector = yield* FailureDetector
    const membership = yield* Membership
    return RunnerHealth.RunnerHealth.of({
      isAlive: (address) =>
        Effect.map(
          detector.of(address),
          (status) => status !== "gone" && !membership.isEvicted(address)
        )
    })
  })
)

/** The two addresses that follow `self` in the sorted list, which is a ring. */
export const ringNeighboursOf = <Address extends { toString(): string }>(
  self: Address,
  addresses: ReadonlyArray<Address>
): ReadonlyArray<Address> => {
  const ring = addresses.toSorted((a, b) => (a.toString() < b.toString() ? -1 : 1))
  const after = ring.filter((address) => address.toString() > self.toString())
  const before = ring.filter((address) => address.toString() < self.toString())
  return [...after, ...before].slice(0, monitoredNeighbours)
}

/**
 * Probes one runner; returns whether it is silent. Reports a silent one on every probe, and marks it
 * dead once the others had time to object and it is evicted. Marks a runner that is gone dead at once.
 */
const probe = Effect.fnUntraced(function* (
  address: RunnerAddress.RunnerAddress,
  isHealthy: boolean,
  wasSilent: boolean
) {
  const storage = yield* RunnerStorage.RunnerStorage
  const membership = yield* Membership
  const status = yield* (yield* FailureDetector).of(address)
  if (status === "silent") {
    yield* membership.report(address, status)
    yield* Effect.sleep(objectionMillis)
  }
  if (status !== "silent" && (wasSilent || membership.suspectsSelf(address))) {
    yield* membership.report(address, status)
  }
  if (status !== "answers" && isHealthy && (status === "gone" || membership.isEvicted(address))) {
    yield* Effect.logInfo("A runner is gone; its shards move", `${address.host}:${address.port}`)
    yield* storage.setRunnerHealth(address, false)
  }
  return status === "silent"
})

const ignoreFailure = Effect.catchCause((cause: Cause.Cause<unknown>) =>
  Effect.logDebug("Failed to probe the other runners", cause)
)

/**
 * Probes the neighbours, the runners that were silent before, and those that report this runner as
 * silent. Marking a runner healthy again is left to the runner that checks all.
 */
const probeAll = Effect.fnUntraced(function* (
  self: RunnerAddress.RunnerAddress,
  silent: Set<string>,
  probes: FiberMap.FiberMap<string>
) {
  const storage = yield* RunnerStorage.RunnerStorage
  const membership = yield* Membership
  const listed = yield* storage.getRunners
  const healthy = listed.filter(([, isHealthy]) => isHealthy).map(([{ address }]) => address)
  const neighbours = ringNeighboursOf(self, healthy)
  for (const [{ address }, isHealthy] of listed) {
    const name = address.toString()
    const isSuspicious = silent.has(name) || membership.suspectsSelf(address)
    if (!neighbours.includes(address) && !isSuspicious) continue
    // Each probe has its own fiber: a silent runner delays no other probe.
    const probing = Effect.map(probe(address, isHealthy, silent.has(name)), (isSilent) => {
      if (isSilent) silent.add(name)
      else silent.delete(name)
    })
    yield* FiberMap.run(probes, name, ignoreFailure(probing), { onlyIfMissing: true })
  }
})

/** Monitors the neighbours for as long as the runner runs. */
export const HealthMonitor = Layer.effectDiscard(
  Effect.gen(function* () {
    const { runnerAddress } = yield* ShardingConfig.ShardingConfig
    if (Option.isNone(runnerAddress)) return
    const probes = yield* FiberMap.make<string>()
    yield* ignoreFailure(probeAll(runnerAddress.value, new Set(), probes)).pipe(
      Effect.repeat(Schedule.spaced(probeIntervalMillis)),
      Effect.forkScoped
    )
  })
)
