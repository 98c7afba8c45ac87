/**
 * Entry of a media process: forwards the voice of many calls over one UDP port. It has no access to the
 * service; the runner that started it controls it, and it ends with that runner.
 */
import { createSocket } from "node:dgram"
import { setTimeout } from "node:timers/promises"
import { Clock, Effect } from "effect"
import { monotonicMillis } from "#server/platform/monotonic"
import type { MediaDriver } from "./media-driver.ts"
import type { MediaOptions, MediaReport, MediaRequest } from "./media-messages.ts"
import { MediaRooms } from "./media-rooms.ts"

const tickMillis = 100
const loadMillis = 1000

const report = (message: MediaReport): void => void process.send?.(message)

/** Returns a port that is free now. */
const freePort = () =>
  new Promise<number>((resolve, reject) => {
    const socket = createSocket("udp4")
    socket.once("error", reject)
    socket.bind(0, () => {
      const { port } = socket.address()
      socket.close(() => resolve(port))
    })
  })

/** A process that had the port before may still be ending. */
const bindTries = 10

const makeDriver = async ({ port: wanted, publicIp }: MediaOptions): Promise<MediaDriver> => {
  // Imported here, so that a platform without the library is a report, not a crash.
  const { dataChannelDriver } = await import("./datachannel-driver.ts")
  const onLog = (level: string, message: string) => report({ t: "log", level, message })
  for (let tries = 1; ; tries++) {
    const port = wanted === 0 ? await freePort() : wanted
    try {
      return dataChannelDriver({ port, publicIp, onLog })
    } catch (error) {
      if (tries >= bindTries) throw new Error(`Failed to bind UDP port ${port}`, { cause: error })
      await setTimeout(tickMillis)
    }
  }
}

const serve = async (options: MediaOptions): Promise<void> => {
  const now = monotonicMillis(Effect.runSync(Clock.Clock))
  const rooms = new MediaRooms(await makeDriver(options), report, now)
  process.on("message", (request: MediaRequest) => rooms.handle(request))
  process.on("disconnect", () => process.exit(0))
  setInterval(() => rooms.tick(), tickMillis)
  let before = 0
  setInterval(() => {
    const forwards = rooms.forwarded - before
    before = rooms.forwarded
    report({ t: "load", forwards, residentBytes: process.memoryUsage.rss() })
  }, loadMillis)
  report({ t: "ready" })
}

serve(JSON.parse(process.argv[2] ?? "{}")).catch((error: unknown) => {
  const message = error instanceof Error ? error.message : String(error)
  process.send?.({ t: "log", level: "Fatal", message }, () => process.exit(1))
})
