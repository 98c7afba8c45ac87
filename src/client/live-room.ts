/**
 * Implementation of {@link Room}: applies events to the view, calls the listeners, and sends the
 * member's actions as frames.
 */
import type { Effect } from "effect"
import { NotInRoom } from "#rpc/errors/codes"
import { iceServers, signal } from "#rpc/peers"
import {
  type JsonObject,
  leave,
  lock,
  type RoomEvent,
  type RoomSnapshot,
  send,
  setMyState,
  setState
} from "#rpc/rooms"
import { BufferedEmitter } from "./buffered-emitter.ts"
import type { Connection } from "./connection.ts"
import type { Unsubscribe } from "./emitter.ts"
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

/** The client's services that rooms and channels use. */
export interface RoomHost {
  readonly connection: Connection
  readonly run: <A, E>(effect: Effect.Effect<A, E>) => Promise<A>
}

const message = (type: string, data: unknown, options: SendOptions = {}) => ({
  type,
  ...(data === undefined ? {} : { data }),
  ...options
})

export class LiveRoom implements Room {
  readonly confirmed: ConfirmedChanges = {
    send: (type, data, options) => this.#request(send, message(type, data, options)),
    setState: async (patch) => {
      await this.#request(setState, { patch })
    },
    setMyState: async (patch) => {
      await this.#request(setMyState, { patch })
    }
  }
  readonly #host: RoomHost
  readonly #myId: string
  readonly #emitter = new BufferedEmitter<RoomEvents>()
  #view: RoomSnapshot
  #closed: RoomClosed | undefined

  constructor(host: RoomHost, joined: ServiceEvents["room_joined"]) {
    this.#host = host
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
    this.#notify(send, message(type, data, options))
  }

  setState(patch: JsonObject): void {
    this.#notify(setState, { patch })
  }

  setMyState(patch: JsonObject): void {
    this.#notify(setMyState, { patch })
  }

  signal(step: FramePayload<typeof signal>): Promise<FrameData<typeof signal>> {
    return this.#request(signal, step)
  }

  async iceServers(): Promise<RtcServers> {
    const { iceServers: servers, ...rest } = await this.#request(iceServers, undefined)
    return { ...rest, iceServers: servers.map((server) => ({ ...server, urls: [...server.urls] })) }
  }

  async lock(locked = true): Promise<void> {
    await this.#request(lock, { locked })
  }

  async leave(): Promise<void> {
    await this.#request(leave, undefined)
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

  #notify<R extends Frame>(frame: R, payload: FramePayload<R>): void {
    if (this.#closed === undefined) this.#host.connection.notify(frame, payload)
    else
      this.emit("warn", {
        t: "warn",
        code: "not_in_room",
        message: `${frame._tag} was not sent: the room is closed.`
      })
  }

  #request<R extends Frame>(frame: R, payload: FramePayload<R>): Promise<FrameData<R>> {
    if (this.#closed !== undefined) return Promise.reject(new NotInRoom())
    return this.#host.run(this.#host.connection.request(frame, payload))
  }
}
