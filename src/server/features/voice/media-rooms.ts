/** The calls of a media process: carries out what the runner asks, and reports what happens. */
import { voice as limits } from "#rpc/limits"
import { type MediaDriver, microphoneMid, slotMid } from "./media-driver.ts"
import type { MediaReport, MediaRequest } from "./media-messages.ts"
import { MediaRoom } from "./media-room.ts"

/** A request for a process that serves. */
type RoomRequest = Exclude<MediaRequest, { t: "bind" }>
type Answer = Extract<MediaRequest, { t: "answer" }>

const slots = Array.from({ length: limits.slots }, (_, slot) => slotMid(slot))

export class MediaRooms {
  readonly #driver: MediaDriver
  readonly #report: (message: MediaReport) => void
  readonly #now: () => number
  readonly #rooms = new Map<number, MediaRoom>()
  /** Packets sent in calls that have ended. */
  #forwardedBefore = 0

  constructor(driver: MediaDriver, report: (message: MediaReport) => void, now: () => number) {
    this.#driver = driver
    this.#report = report
    this.#now = now
  }

  /** Packets sent so far. */
  get forwarded(): number {
    let total = this.#forwardedBefore
    for (const { forwarded } of this.#rooms.values()) total += forwarded
    return total
  }

  tick(): void {
    for (const room of this.#rooms.values()) room.tick()
  }

  handle(request: RoomRequest): void {
    const room = this.#rooms.get(request.call)
    switch (request.t) {
      case "open":
        return (room ?? this.#make(request.call)).open(request.session)
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
        this.#forwardedBefore += room?.forwarded ?? 0
        this.#rooms.delete(request.call)
    }
  }

  #make(call: number): MediaRoom {
    const room = new MediaRoom(
      this.#driver,
      {
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
    this.#rooms.set(call, room)
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
