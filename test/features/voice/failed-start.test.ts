/** A media server that cannot start: calls answer `voice_unavailable`, and the log says why, once. */
import { createSocket } from "node:dgram"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer, Logger } from "effect"
import { TestClock } from "effect/testing"
import { VoiceMedia } from "#entities/voice-session/media"
import { mediaWorkers } from "#server/features/voice/media-workers"
import { Settings } from "#server/platform/settings/settings"

const withoutLibrary = fileURLToPath(
  new URL("../../support/media-process-without-library.ts", import.meta.url)
)

/** A UDP port that another program has. */
const takenPort = Effect.acquireRelease(
  Effect.callback<{ readonly port: number; readonly close: () => void }>((resume) => {
    const socket = createSocket("udp4")
    socket.bind(0, () =>
      resume(Effect.succeed({ port: socket.address().port, close: () => socket.close() }))
    )
  }),
  ({ close }) => Effect.sync(close)
)

const start = Effect.gen(function* () {
  const media = yield* VoiceMedia
  const nothing = () => undefined
  const listener = { offered: nothing, speaking: nothing, failed: nothing, lost: nothing }
  return yield* Effect.match(media.start(listener, "env_a"), {
    onSuccess: () => "started",
    onFailure: ({ _tag }) => _tag
  })
})

/** Starts calls for a minute, in which the process is tried again; returns what the log says. */
const failedStarts = Effect.fnUntraced(function* (port: number, program?: string) {
  const lines: Array<string> = []
  const logger = Logger.make(
    ({ message }) => void lines.push([message].flat().map(String).join(" "))
  )
  const env = { SVC_VOICE_UDP_PORTS: String(port) }
  const Workers = mediaWorkers(program).pipe(
    Layer.provide(Settings.layer),
    Layer.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env })))
  )
  yield* Effect.gen(function* () {
    for (let tries = 0; tries < 3; tries++) {
      assert.strictEqual(yield* start, "voice_unavailable")
      assert.strictEqual(yield* start, "voice_unavailable", "it is left alone for a while")
      yield* TestClock.adjust("30 seconds")
    }
  }).pipe(Effect.provide(Workers), Effect.provide(Logger.layer([logger])), Effect.scoped)
  return lines.filter((line) => line.includes("Failed to start the media server"))
})

describe("a media server that cannot start", () => {
  it.effect(
    "says once that its UDP port is taken",
    () =>
      Effect.gen(function* () {
        const { port } = yield* takenPort
        const [line, ...more] = yield* failedStarts(port)
        assert.include(line, `Failed to bind UDP port ${port}`)
        assert.isEmpty(more)
      }).pipe(Effect.scoped),
    { tags: "long" }
  )

  it.effect("says once that the platform has no library", () =>
    Effect.gen(function* () {
      const [line, ...more] = yield* failedStarts(0, withoutLibrary)
      assert.include(line, "No binary for this platform")
      assert.isEmpty(more)
    })
  )
})
