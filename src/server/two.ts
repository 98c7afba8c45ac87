/**
 * Two runners on one laptop: two processes with one database behind one port, to see a room survive the
 * loss of its runner. The listening socket is shared, so a client that reconnects reaches the runner that is
 * left. A runner that ends is started again. Relays between the runners what the demo games ask for. Refused
 * in production.
 */
import cluster, { type Worker } from "node:cluster"
import { fileURLToPath } from "node:url"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Config, Console, Effect, Option } from "effect"
import { decodeKillRunner } from "./demo/kill-message.ts"
import { npmEnd } from "./platform/npm-parent.ts"
import { freePort } from "./platform/settings/free-port.ts"
import { failCommand } from "./start-error.ts"

const host = "127.0.0.1"
const restartMillis = 5000

/** Starts a runner; media and TURN take ports of their own, so that both runners can have them. */
const startRunner = Effect.gen(function* () {
  const port = yield* freePort(host)
  return yield* Effect.sync(() =>
    cluster.fork({
      SVC_RUNNER_HOST: host,
      SVC_RUNNER_PORT: `${port}`,
      SVC_VOICE_UDP_PORTS: "0",
      SVC_TURN_PORT: "0"
    })
  )
})

const ended = (worker: Worker): Effect.Effect<void> =>
  Effect.callback((resume) => void worker.once("exit", () => resume(Effect.void)))

const keepRunner = Effect.gen(function* () {
  const worker = yield* startRunner
  yield* ended(worker)
  yield* Console.log(
    "A runner has ended. It starts again in 5 seconds; its rooms are on the other."
  )
  yield* Effect.sleep(restartMillis)
})

const workersOf = () => Object.values(cluster.workers ?? {}).flatMap((worker) => worker ?? [])

/** Passes on to all runners the request to kill that of a room. */
const relayKills = Effect.sync(() =>
  cluster.on("message", (_, message: unknown) => {
    const kill = decodeKillRunner(message)
    if (Option.isNone(kill)) return
    for (const worker of workersOf()) if (worker.isConnected()) worker.send(kill.value)
  })
)

const stopRunners = Effect.suspend(() => {
  const ends = workersOf().map((worker) => {
    const end = ended(worker)
    worker.process.kill("SIGTERM")
    return end
  })
  return Effect.all(ends, { concurrency: "unbounded", discard: true })
})

Effect.gen(function* () {
  const mode = yield* Config.String("NODE_ENV").pipe(Config.withDefault("development"))
  if (mode === "production") {
    return yield* failCommand("Two runners on one machine are for development only.")
  }
  yield* Effect.sync(() =>
    cluster.setupPrimary({ exec: fileURLToPath(new URL("main.ts", import.meta.url)) })
  )
  yield* relayKills
  yield* Effect.raceFirst(
    Effect.all([Effect.forever(keepRunner), Effect.forever(keepRunner)], {
      concurrency: "unbounded"
    }),
    npmEnd
  )
}).pipe(
  Effect.ensuring(stopRunners),
  Effect.scoped,
  Effect.provide(NodeServices.layer),
  NodeRuntime.runMain
)
