/**
 * Two runners on one laptop: two processes with one database behind one port, to see a room survive the
 * loss of its runner. The listening socket is shared, so a client that reconnects reaches the runner that is
 * left. A runner that ends is started again. The TURN server of both lives here, and so outlives either.
 * Relays between the runners what the demo games ask for. Refused in production.
 */
import cluster, { type Worker } from "node:cluster"
import { fileURLToPath } from "node:url"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Console, Effect, Option } from "effect"
import { decodeKillRunner } from "./kill-message.ts"
import { startRelay } from "../features/peers/turn-servers.ts"
import { npmEnd } from "../platform/npm-parent.ts"
import { freePort } from "../platform/settings/free-port.ts"
import { turn as turnSettings } from "../platform/settings/media.ts"
import { network } from "../platform/settings/network.ts"
import { textOf } from "../platform/settings/table.ts"
import { mode } from "../platform/settings/telemetry.ts"
import { failCommand, stopTeardown } from "../start-error.ts"

const host = "127.0.0.1"
const restartMillis = 5000

type Environment = Readonly<Record<string, string>>

/** Starts a runner; its media take ports of their own, so that both runners can have them. */
const startRunner = Effect.fnUntraced(function* (turn: Environment) {
  const port = yield* freePort(host)
  return yield* Effect.sync(() =>
    cluster.fork({
      SVC_RUNNER_HOST: host,
      SVC_RUNNER_PORT: `${port}`,
      SVC_VOICE_UDP_PORTS: "0",
      ...turn
    })
  )
})

/** Starts the TURN server of both runners, where the environment names none; returns their settings of it. */
const startTurn = Effect.gen(function* () {
  const urls = yield* textOf(turnSettings.urls)
  const port = Number(yield* textOf(turnSettings.port))
  const baseUrl = (yield* textOf(network.baseUrl)) ?? "http://localhost"
  const none: Environment = {}
  if (urls !== "" || port === 0) return none
  const { hostname } = new URL(baseUrl)
  return yield* startRelay(port, hostname).pipe(
    Effect.map((relay): Environment => ({
      SVC_TURN_URLS: relay.urls.join(),
      SVC_TURN_SECRET: relay.secret
    })),
    Effect.catch(() =>
      Effect.as(
        Console.error(`No TURN server: UDP port ${port} is taken. Choose another SVC_TURN_PORT.`),
        none
      )
    )
  )
})

const ended = (worker: Worker): Effect.Effect<void> =>
  Effect.callback((resume) => void worker.once("exit", () => resume(Effect.void)))

const keepRunner = Effect.fnUntraced(function* (turn: Environment) {
  const worker = yield* startRunner(turn)
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
  if ((yield* textOf(mode.mode)) === "production") {
    return yield* failCommand("Two runners on one machine are for development only.")
  }
  yield* Effect.sync(() =>
    cluster.setupPrimary({ exec: fileURLToPath(new URL("../main.ts", import.meta.url)) })
  )
  yield* relayKills
  const turn = yield* startTurn
  yield* Effect.raceFirst(
    Effect.all([Effect.forever(keepRunner(turn)), Effect.forever(keepRunner(turn))], {
      concurrency: "unbounded"
    }),
    npmEnd
  )
}).pipe(
  Effect.ensuring(stopRunners),
  Effect.scoped,
  Effect.provide(NodeServices.layer),
  NodeRuntime.runMain({ teardown: stopTeardown })
)
