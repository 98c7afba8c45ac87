/** Calls of a media process. Carries out the runner's requests, and reports events. */
import { type MediaDriver, microphoneMid, slotMid } from "./media-driver.ts"
import { mediaLimits } from "./media-limits.ts"
import type { MediaReport, MediaRequest } from "./media-messages.ts"
import { MediaRoom } from "./media-room.ts"
import { PacketShares } from "./packet-shares.ts"

/** Request to a process that serves. */
type RoomRequest = Exclude<MediaRequest, { t: "bind" }>
type Answer = Extract<MediaRequest, { t: "answer" }>

interface Room {
  readonly environmentId: string
  readonly media: MediaRoom
}

/** Milliseconds of packets in the budget before the first tick. */
const firstRefillMillis = 100

const slots = Array.from({ length: mediaLimits.slots }, (_, slot) => slotMid(slot))

export class MediaRooms {
  readonly #driver: MediaDriver
  readonly #report: (message: MediaReport) => void
  readonly #now: () => number
  readonly #rooms = new Map<number, Room>()
  readonly #shares = new PacketShares(mediaLimits.processPackets)
  /** Packets sent since the last report, by environment. */
  readonly #sent = new Map<string, number>()
  #tickedAt: number

  constructor(driver: MediaDriver, report: (message: MediaReport) => void, now: () => number) {
    this.#driver = driver
    this.#report = report
    this.#now = now
    this.#tickedAt = now()
    this.#shares.refill(firstRefillMillis)
  }

  /** Returns the packets sent since the last call, by environment. */
  takeSent(): Readonly<Record<string, number>> {
    const sent = Object.fromEntries(this.#sent)
    this.#sent.clear()
    return sent
  }

  tick(): void {
    const now = this.#now()
    const beyondShare = this.#shares.refill(now - this.#tickedAt)
    this.#tickedAt = now
    for (const { environmentId, media } of this.#rooms.values()) {
      media.tick(beyondShare.has(environmentId))
    }
  }

  handle(request: RoomRequest): void {
    const room = this.#rooms.get(request.call)?.media
    switch (request.t) {
      case "open":
        return (room ?? this.#make(request.call, request.environmentId)).open(request.session)
      case "answer":
        return this.#answer(room, request)
      case "microphone":
        return room?.setMicrophone(request.session, request.open)
      case "hint":
        return room?.hint(request.session)
      case "close":
        return room?.close(request.session)
      case "end":
        room?.end()
        this.#rooms.delete(request.call)
    }
  }

  #make(call: number, environmentId: string): MediaRoom {
    const room = new MediaRoom(
      this.#driver,
      {
        take: (packets) => this.#shares.take(environmentId, packets),
        sent: (packets) =>
          this.#sent.set(environmentId, (this.#sent.get(environmentId) ?? 0) + packets),
        offered: (session, gen, sdp) =>
          this.#report({ t: "offered", call, session, gen, sdp, publishMid: microphoneMid, slots }),
        connected: (session) => this.#report({ t: "connected", session }),
        failed: (session) => this.#report({ t: "failed", call, session }),
        speaking: (changes) =>
          this.#report({
            t: "speaking",
            call,
            slots: Object.fromEntries(changes.map(([slot, session]) => [slotMid(slot), session]))
          })
      },
      this.#now
    )
    this.#rooms.set(call, { environmentId, media: room })
    return room
  }

  #answer(room: MediaRoom | undefined, { gen, id, sdp, session }: Answer): void {
    try {
      this.#report({ t: "answered", id, candidates: room?.answer(session, gen, sdp) ?? [] })
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      this.#report({ t: "refused", id, message })
    }
  }
}
