/**
 * Entry point of a media process, which forwards the voice of many calls over one UDP port. It has no
 * access to the service. The runner that started it controls it, and it ends with that runner.
 */
import { createSocket } from "node:dgram"
import { setTimeout } from "node:timers/promises"
import * as Clock from "effect/Clock"
import { monotonicMillis } from "#entities/monotonic"
import type { MediaDriver } from "./media-driver.ts"
import type { MediaOptions, MediaReport, MediaRequest } from "./media-messages.ts"
import { MediaRooms } from "./media-rooms.ts"

const tickMillis = 100
const loadMillis = 1000

const report = (message: MediaReport): void => void process.send?.(message)

/** Returns a currently free port. */
const freePort = () =>
  new Promise<number>((resolve, reject) => {
    const socket = createSocket("udp4")
    socket.on("error", reject)
    socket.bind(0, () => {
      const { port } = socket.address()
      socket.close(() => resolve(port))
    })
  })

/** Milliseconds between attempts to bind. A previous process may still hold the port. */
const bindMillis = 20
const bindTries = 50

// Imported here, so that a platform without the library is a report, not a crash.
const loadDriver = async () => (await import("./datachannel-driver.ts")).dataChannelDriver

const bind = async (
  makeDriver: Awaited<ReturnType<typeof loadDriver>>,
  { port: wanted, publicIp }: MediaOptions
): Promise<MediaDriver> => {
  const onLog = (level: string, message: string) => report({ t: "log", level, message })
  for (let tries = 1; ; tries++) {
    const port = wanted === 0 ? await freePort() : wanted
    try {
      return makeDriver({ port, publicIp, onLog })
    } catch (error) {
      if (tries >= bindTries) throw new Error(`Failed to bind UDP port ${port}`, { cause: error })
      await setTimeout(bindMillis)
    }
  }
}

const fail = (error: unknown): void => {
  const message = error instanceof Error ? error.message : String(error)
  process.send?.({ t: "log", level: "Fatal", message }, () => process.exit(1))
}

const serve = (driver: MediaDriver): MediaRooms => {
  const rooms = new MediaRooms(driver, report, monotonicMillis(Clock.Clock.defaultValue()))
  setInterval(() => rooms.tick(), tickMillis)
  report({ t: "ready" })
  return rooms
}

/** Loads all modules, and waits for its port. Until then it is a spare process. */
const start = async (): Promise<void> => {
  const makeDriver = await loadDriver()
  let rooms: MediaRooms | undefined
  setInterval(() => {
    const forwards = rooms?.takeSent() ?? {}
    report({ t: "load", forwards, residentBytes: process.memoryUsage.rss() })
  }, loadMillis)
  process.on("disconnect", () => process.exit(0))
  process.on("message", (request: MediaRequest) => {
    if (request.t !== "bind") return rooms?.handle(request)
    bind(makeDriver, request).then((driver) => {
      rooms = serve(driver)
    }, fail)
  })
}

start().catch(fail)
