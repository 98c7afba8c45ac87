/**
 * Implementation of {@link Room}: applies events to the view, calls the listeners, and sends the
 * member's actions as frames.
 */
import { BufferedEmitter } from "./buffered-emitter.ts"
import type { Connection } from "./connection.ts"
import type { Unsubscribe } from "./emitter.ts"
import { ClientError } from "./errors.ts"
import type { Frame, FrameData, FramePayload } from "./frames.ts"
import { applyEvent } from "./room-reducer.ts"
import type {
  ConfirmedChanges,
  Room,
  RoomClosed,
  RoomEvents,
  RtcServers,
  SendOptions,
  ServiceEvents
} from "./room.ts"
import type { JsonObject, RoomEvent, RoomSnapshot } from "./wire.ts"

const message = (type: string, data: unknown, options: SendOptions = {}) => ({
  type,
  ...(data === undefined ? {} : { data }),
  ...options
})

export class LiveRoom implements Room {
  readonly confirmed: ConfirmedChanges = {
    send: (type, data, options) => this.#request("send", message(type, data, options)),
    setState: async (patch) => {
      await this.#request("setState", { patch })
    },
    setMyState: async (patch) => {
      await this.#request("setMyState", { patch })
    }
  }
  readonly #connection: Connection
  readonly #myId: string
  readonly #emitter = new BufferedEmitter<RoomEvents>()
  #view: RoomSnapshot
  #closed: RoomClosed | undefined

  constructor(connection: Connection, joined: ServiceEvents["room_joined"]) {
    this.#connection = connection
    this.#myId = joined.playerId
    this.#view = joined.room
  }

  get id() {
    return this.#view.id
  }

  get code() {
    return this.#view.code
  }

  get mode() {
    return this.#view.mode
  }

  get state() {
    return this.#view.state
  }

  get players() {
    return this.#view.players
  }

  get me() {
    return this.#view.players.find(({ id }) => id === this.#myId)
  }

  get hostId() {
    return this.#view.hostId
  }

  get isHost() {
    return this.#view.hostId === this.#myId
  }

  get snapshot() {
    return this.#view
  }

  get closed() {
    return this.#closed
  }

  on<Name extends keyof RoomEvents>(
    name: Name,
    listener: (event: RoomEvents[Name]) => void
  ): Unsubscribe {
    return this.#emitter.on(name, listener)
  }

  send(type: string, data?: unknown, options?: SendOptions): void {
    this.#notify("send", message(type, data, options))
  }

  setState(patch: JsonObject): void {
    this.#notify("setState", { patch })
  }

  setMyState(patch: JsonObject): void {
    this.#notify("setMyState", { patch })
  }

  signal(step: FramePayload<"signal">): Promise<FrameData<"signal">> {
    return this.#request("signal", step)
  }

  async iceServers(): Promise<RtcServers> {
    const { iceServers: servers, ...rest } = await this.#request("iceServers", undefined)
    return { ...rest, iceServers: servers.map((server) => ({ ...server, urls: [...server.urls] })) }
  }

  async lock(locked = true): Promise<void> {
    await this.#request("lock", { locked })
  }

  async leave(): Promise<void> {
    await this.#request("leave", undefined)
    this.end({ reason: "left" })
  }

  /** Handles an event of this room. */
  receive(event: RoomEvent): void {
    if (this.#closed !== undefined) return
    const before = this.#view
    this.#view = applyEvent(before, event)
    this.emit(event.t, event)
    if (this.#view !== before) this.emit("change", this)
    if (event.t === "room_closed") this.end({ reason: event.reason })
    if (event.t === "player_left" && event.playerId === this.#myId) this.end({ reason: "removed" })
  }

  /** Closes the room for this client. */
  end(closed: RoomClosed): void {
    if (this.#closed !== undefined) return
    this.#closed = closed
    this.emit("closed", closed)
  }

  /** Calls the listeners, or buffers the event until {@link LiveRoom.flush}. */
  emit<Name extends keyof RoomEvents>(name: Name, event: RoomEvents[Name]): void {
    this.#emitter.emit(name, event)
  }

  /** Delivers the buffered events to the listeners. */
  flush(): void {
    this.#emitter.flush()
  }

  #notify<F extends Frame>(frame: F, payload: FramePayload<F>): void {
    if (this.#closed === undefined) this.#connection.notify(frame, payload)
    else
      this.emit("warn", {
        t: "warn",
        code: "not_in_room",
        message: `${frame} was not sent: the room is closed.`
      })
  }

  #request<F extends Frame>(frame: F, payload: FramePayload<F>): Promise<FrameData<F>> {
    if (this.#closed === undefined) return this.#connection.request(frame, payload)
    const message = "This room is closed: join it again, or another one."
    return Promise.reject(new ClientError("not_in_room", message))
  }
}
