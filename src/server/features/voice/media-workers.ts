/**
 * The media processes of this runner, one per UDP port. The first call that needs one starts it. One that
 * ends is started again by the next call; one that fails to start is left alone for a while.
 */
import { Clock, Effect, Layer, Schedule } from "effect"
import { VoiceUnavailable } from "#rpc/errors/codes"
import { type MediaListener, VoiceMedia } from "#entities/voice-session/media"
import { monotonicMillis } from "#server/platform/monotonic"
import { Settings } from "#server/platform/settings/settings"
import { JoinsUnderWay } from "./joins-under-way.ts"
import { MediaWorker } from "./media-worker.ts"

/** How long a process may take to start, within the time that a call waits for its entity. */
const startTimeout = "2500 millis"
/** How long a port is left alone after its process failed to start. */
const failureMillis = 30_000

interface Place {
  readonly port: number
  worker: MediaWorker | undefined
  /** Monotonic milliseconds. */
  failedUntil: number
}

const placeOf = (port: number): Place => ({ port, worker: undefined, failedUntil: 0 })

const unavailable = (message: string) => Effect.fail(new VoiceUnavailable({ message }))

/** Why the settings allow no media server; undefined if they do. */
const obstacle = ({ production, voice }: Settings["Service"]): string | undefined => {
  if (voice.workers === 0) return "This deployment has no media server: set SVC_VOICE_WORKERS."
  if (production && voice.publicIp === undefined) {
    return "The media server has no public address: set SVC_VOICE_PUBLIC_IP."
  }
  return undefined
}

/** Logs what the library reports; each reason why a process does not start, once. */
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
          "Failed to start the media server: calls of more than eight answer voice_unavailable. " +
            "Check SVC_VOICE_UDP_PORTS, and that node-datachannel is installed for this platform",
          message
        )
      )
    }
  }
})

/** Ends the processes that hang or hold too much memory. */
const checkAll = (places: ReadonlyArray<Place>) =>
  Effect.forEach(places, ({ worker }) => {
    const reason = worker?.check()
    if (reason === undefined) return Effect.void
    worker?.stop()
    return Effect.logWarning(`Ending a media process, whose members join again: ${reason}`)
  })

const supervise = (places: ReadonlyArray<Place>, joins: JoinsUnderWay) =>
  checkAll(places).pipe(
    Effect.andThen(Effect.sync(() => joins.releaseSettled())),
    Effect.repeat(Schedule.spaced("1 second"))
  )

const makeMediaWorkers = (program: string | undefined) =>
  Effect.gen(function* () {
    const settings = yield* Settings
    const { ports, publicIp, workers } = settings.voice
    const now = monotonicMillis(yield* Clock.Clock)
    const runFork = Effect.runForkWith(yield* Effect.context<never>())
    const obstacleHere = obstacle(settings)
    if (obstacleHere !== undefined && workers > 0) yield* Effect.logWarning(obstacleHere)
    const places = ports.slice(0, workers).map(placeOf)
    const log = yield* makeLog
    const joins = new JoinsUnderWay(now)
    let isClosing = false

    const spawn = (place: Place): MediaWorker => {
      const worker: MediaWorker = new MediaWorker(
        { port: place.port, ...(publicIp === undefined ? {} : { publicIp }) },
        {
          onLog: log,
          onConnected: (session) => joins.settle(session),
          onEnd: (wasReady) => {
            if (place.worker === worker) place.worker = undefined
            if (!wasReady) place.failedUntil = now() + failureMillis
            else if (!isClosing) runFork(Effect.logWarning("A media process has ended"))
          }
        },
        program
      )
      place.worker = worker
      return worker
    }

    /** The process for a new call: the one that sends least. */
    const choose = (): MediaWorker | undefined => {
      const [place] = places
        .filter(({ failedUntil, worker }) => now() >= failedUntil && worker?.isBusy !== true)
        .toSorted((a, b) => (a.worker?.forwards ?? 0) - (b.worker?.forwards ?? 0))
      if (place === undefined) return undefined
      if (place.worker?.isSpent === true) {
        place.worker.stop()
        place.worker = undefined
      }
      return place.worker ?? spawn(place)
    }

    yield* Effect.forkScoped(supervise(places, joins))

    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        isClosing = true
        for (const { worker } of places) worker?.stop()
      })
    )

    return {
      start: (listener: MediaListener, environmentId: string) =>
        Effect.suspend(() => {
          if (obstacleHere !== undefined) return unavailable(obstacleHere)
          const worker = isClosing ? undefined : choose()
          if (worker === undefined) return unavailable("The media server is busy or has failed.")
          return worker.ready.pipe(
            Effect.timeoutOrElse({
              duration: startTimeout,
              orElse: () => unavailable("The media server is starting.")
            }),
            Effect.map(() => joins.bound(worker.start(listener), environmentId))
          )
        })
    }
  })

/** The media processes; tests and benchmarks run another program in them. */
export const mediaWorkers = (program?: string) =>
  Layer.effect(VoiceMedia, makeMediaWorkers(program))

export const MediaWorkersLive = mediaWorkers()
