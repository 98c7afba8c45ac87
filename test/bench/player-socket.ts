/** Sockets of players for benchmarks: requests with replies, and events. */
import { WebSocket } from "ws"

export type Frame = Readonly<Record<string, unknown>>

/** The value at a path of a JSON value. */
export const member = (value: unknown, ...path: ReadonlyArray<string>): unknown =>
  path.reduce<unknown>(
    (inner, key) =>
      typeof inner === "object" && inner !== null ? Reflect.get(inner, key) : undefined,
    value
  )

/** A signed-in player and the runner it connects to. */
export interface Seat {
  readonly id: string
  readonly socketUrl: string
  readonly key: string
  readonly token: string
}

/** A socket that sends requests and receives events. */
export class PlayerSocket {
  readonly #ws: WebSocket
  readonly #replies = new Map<string, (frame: Frame) => void>()
  #rid = 0
  closed: number | undefined

  constructor(ws: WebSocket, heard: (frame: Frame) => void) {
    this.#ws = ws
    ws.on("message", (data) => {
      const frame: Frame = JSON.parse(String(data))
      const reply = frame["t"] === "reply" ? this.#replies.get(String(frame["rid"])) : undefined
      if (reply === undefined) return heard(frame)
      this.#replies.delete(String(frame["rid"]))
      reply(frame)
    })
    ws.on("error", () => undefined)
    ws.on("close", (code) => {
      this.closed = code
    })
  }

  static open(seat: Seat, heard: (frame: Frame) => void): Promise<PlayerSocket> {
    return new Promise((resolve, reject) => {
      const ws = new WebSocket(`${seat.socketUrl}/v1/realtime`, { perMessageDeflate: false })
      const socket = new PlayerSocket(ws, (frame) => {
        if (frame["t"] === "welcome") resolve(socket)
        else heard(frame)
      })
      ws.once("error", reject)
      ws.once("close", (code) => reject(new Error(`closed with ${code} before its welcome`)))
      ws.once("open", () =>
        ws.send(JSON.stringify({ t: "auth", key: seat.key, token: seat.token }))
      )
    })
  }

  say(frame: object): void {
    if (this.closed === undefined) this.#ws.send(JSON.stringify(frame))
  }

  ask(frame: object, answered: (reply: Frame) => void): void {
    this.#rid += 1
    this.#replies.set(`r${this.#rid}`, answered)
    this.say({ ...frame, rid: `r${this.#rid}` })
  }

  request(frame: object): Promise<Frame> {
    return new Promise((resolve) => this.ask(frame, resolve))
  }

  close(): void {
    this.#ws.terminate()
  }
}
