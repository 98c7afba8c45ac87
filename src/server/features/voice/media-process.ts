/**
 * Entry of a media process: forwards the voice of many calls over one UDP port. It has no access to the
 * service; the runner that started it controls it, and it ends with that runner.
 */
import { createSocket } from "node:dgram"
import { setTimeout } from "node:timers/promises"
import { voice as limits } from "#rpc/limits"
import { type MediaDriver, microphoneMid, slotMid } from "./media-driver.ts"
import type { MediaOptions, MediaReport, MediaRequest } from "./media-messages.ts"
import { MediaRoom } from "./media-room.ts"

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

const slots = Array.from({ length: limits.slots }, (_, slot) => slotMid(slot))

const serve = async (options: MediaOptions): Promise<void> => {
  const driver = await makeDriver(options)
  const rooms = new Map<number, MediaRoom>()
  const now = () => performance.now()

  const roomOf = (call: number): MediaRoom => {
    const known = rooms.get(call)
    if (known !== undefined) return known
    const room = new MediaRoom(
      driver,
      {
        offered: (session, gen, sdp) =>
          report({ t: "offered", call, session, gen, sdp, publishMid: microphoneMid, slots }),
        failed: (session) => report({ t: "failed", call, session }),
        speaking: (changes) =>
          report({
            t: "speaking",
            call,
            slots: Object.fromEntries(changes.map(([slot, session]) => [slotMid(slot), session]))
          })
      },
      now
    )
    rooms.set(call, room)
    return room
  }

  const answer = ({
    call,
    gen,
    id,
    sdp,
    session
  }: Extract<MediaRequest, { t: "answer" }>): void => {
    try {
      const candidates = rooms.get(call)?.answer(session, gen, sdp) ?? []
      report({ t: "answered", id, candidates })
    } catch (error) {
      report({ t: "refused", id, message: error instanceof Error ? error.message : String(error) })
    }
  }

  const handle = (request: MediaRequest): void => {
    switch (request.t) {
      case "open":
        return roomOf(request.call).open(request.session)
      case "answer":
        return answer(request)
      case "microphone":
        return rooms.get(request.call)?.setMicrophone(request.session, request.open)
      case "hint":
        return rooms.get(request.call)?.hint(request.session)
      case "close":
        return rooms.get(request.call)?.close(request.session)
      case "end":
        rooms.get(request.call)?.end()
        rooms.delete(request.call)
    }
  }

  process.on("message", handle)
  process.on("disconnect", () => process.exit(0))
  setInterval(() => {
    for (const room of rooms.values()) room.tick()
  }, tickMillis)
  let before = 0
  setInterval(() => {
    let total = 0
    for (const { forwarded } of rooms.values()) total += forwarded
    const forwards = Math.max(0, total - before)
    before = total
    report({ t: "load", forwards, residentBytes: process.memoryUsage.rss() })
  }, loadMillis)
  report({ t: "ready" })
}

serve(JSON.parse(process.argv[2] ?? "{}")).catch((error: unknown) => {
  const message = error instanceof Error ? error.message : String(error)
  process.send?.({ t: "log", level: "Fatal", message }, () => process.exit(1))
})
