/** Media server of this runner: the calls in its processes. The first call starts them. */
import { Clock, Effect, Layer, Schedule } from "effect"
import { VoiceUnavailable } from "#rpc/errors/codes"
import { type MediaListener, VoiceMedia } from "#entities/voice-session/media"
import { monotonicMillis } from "#entities/monotonic"
import { Settings } from "#server/platform/settings/settings"
import { JoinsUnderWay } from "./joins-under-way.ts"
import { MediaWorker } from "./media-worker.ts"
import { WorkerPool } from "./worker-pool.ts"

/** Time limit for the start of a process, within the time that a call waits for its entity. */
const startTimeout = "2500 millis"

const unavailable = (message: string) => Effect.fail(new VoiceUnavailable({ message }))

/** Reason why the settings allow no media server; undefined if they do. */
const obstacle = ({ production, voice }: Settings["Service"]): string | undefined => {
  if (voice.ports.length === 0) {
    return "This deployment has no media server: SVC_VOICE_UDP_PORTS is off."
  }
  if (production && voice.publicIp === undefined) {
    return "The media server has no public address: set SVC_VOICE_PUBLIC_IP."
  }
  return undefined
}

/** Logs reports of the library. Logs each reason of a failed process start once. */
const makeLog = Effect.gen(function* () {
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const reported = new Set<string>()
  return (level: string, message: string): void => {
    if (level !== "Fatal") {
      runFork(Effect.logDebug("The media server reports", message))
    } else if (!reported.has(message)) {
      reported.add(message)
      runFork(
        Effect.logError(
          "Failed to start the media server: calls of more than eight members fail with voice_unavailable. " +
            "Check SVC_VOICE_UDP_PORTS, and that node-datachannel is installed for this platform",
          message
        )
      )
    }
  }
})

const supervise = (pool: WorkerPool, joins: JoinsUnderWay) =>
  Effect.suspend(() => {
    joins.releaseCompleted()
    const reasons = pool.check()
    pool.keepSpare()
    return Effect.forEach(reasons, (reason) =>
      Effect.logWarning(`Ending a media process, whose members join again: ${reason}`)
    )
  }).pipe(Effect.repeat(Schedule.spaced("1 second")))

const makeMediaWorkers = (program: string | undefined) =>
  Effect.gen(function* () {
    const settings = yield* Settings
    const { ports, publicIp } = settings.voice
    const now = monotonicMillis(yield* Clock.Clock)
    const runFork = Effect.runForkWith(yield* Effect.context<never>())
    const obstacleHere = obstacle(settings)
    if (obstacleHere !== undefined && ports.length > 0) yield* Effect.logWarning(obstacleHere)
    const onLog = yield* makeLog
    const joins = new JoinsUnderWay(now)
    const pool = new WorkerPool({
      slots: ports.map((port) => ({ port, ...(publicIp === undefined ? {} : { publicIp }) })),
      launch: (onEnd) =>
        new MediaWorker(
          { onLog, onConnected: (session) => joins.complete(session), onEnd },
          program
        ),
      onLost: () => runFork(Effect.logWarning("Lost a media process; its calls end")),
      now
    })
    yield* Effect.forkScoped(supervise(pool, joins))
    yield* Effect.addFinalizer(() => Effect.sync(() => pool.stop()))

    return {
      start: (listener: MediaListener, environmentId: string) =>
        Effect.suspend(() => {
          if (obstacleHere !== undefined) return unavailable(obstacleHere)
          const worker = pool.choose(environmentId)
          if (worker === undefined) return unavailable("The media server is busy or has failed.")
          return worker.ready.pipe(
            Effect.timeoutOrElse({
              duration: startTimeout,
              orElse: () => unavailable("The media server is starting.")
            }),
            Effect.map(() => joins.bound(worker.start(listener, environmentId), environmentId))
          )
        })
    }
  })

/** Media processes. Tests and benchmarks run another program in them. */
export const mediaWorkers = (program?: string) =>
  Layer.effect(VoiceMedia, makeMediaWorkers(program))

export const MediaWorkersLive = mediaWorkers()
