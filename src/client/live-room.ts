/**
 * Implementation of {@link Room}: applies events to the view, calls the listeners, and sends the
 * member's actions as frames.
 */
import { BufferedEmitter } from "./buffered-emitter.ts"
import type { Connection } from "./connection.ts"
import type { Core } from "./core.ts"
import { ClientError } from "./errors.ts"
import type { Frame, FrameData, FramePayload } from "./frames.ts"
import type { RtcServers } from "./peer-connection.ts"
import { peersOf } from "./peers.ts"
import { applyEvent } from "./room-reducer.ts"
import type {
  ConfirmedChanges,
  ModerateOptions,
  OptimisticChanges,
  Room,
  RoomClosed,
  RoomEvents,
  RoomPeers,
  SendOptions,
  ServiceEvents
} from "./room.ts"
import type { JsonObject, RoomEvent, RoomModerateOp, RoomSnapshot, VoteOp } from "./wire.ts"

/** JSON leaves out the members that are undefined. */
const message = (type: string, data: unknown, { to }: SendOptions = {}) =>
  ({ type, data, to }) as FramePayload<"send">

/** A change of the room's state or of this player's. */
type StateChange = Extract<RoomEvent, { readonly t: "state" | "player_state" }>

/** The player who makes a change, and the change. */
const textOf = (change: StateChange): string =>
  JSON.stringify([change.t === "state" ? change.from : change.playerId, change.patch])

/** Whether an event confirms a change of this player. */
const confirms = (event: RoomEvent, change: StateChange): boolean =>
  event.t === change.t && textOf(event as StateChange) === textOf(change)

export class LiveRoom extends BufferedEmitter<RoomEvents> implements Room {
  readonly confirmed: ConfirmedChanges = {
    send: (type, data, options) => this.#request("send", message(type, data, options)),
    setState: async (patch) => {
      await this.#request("setState", { patch })
    },
    setMyState: async (patch) => {
      await this.#request("setMyState", { patch })
    }
  }
  readonly optimistic: OptimisticChanges = {
    setState: (patch) =>
      this.#predict({ t: "state", patch, from: this.#myId, version: this.#view.version }, () =>
        this.confirmed.setState(patch)
      ),
    setMyState: (patch) =>
      this.#predict({ t: "player_state", playerId: this.#myId, patch }, () =>
        this.confirmed.setMyState(patch)
      )
  }
  readonly peers: RoomPeers
  readonly #connection: Connection
  readonly #myId: string
  /** Snapshot of what the service has sent. */
  #view: RoomSnapshot
  /** The changes that it has not confirmed, and the view with them. */
  #predicted: ReadonlyArray<StateChange> = []
  #shown: RoomSnapshot
  #closed: RoomClosed | undefined

  constructor(core: Core, joined: ServiceEvents["room_joined"]) {
    super()
    this.peers = peersOf(this, core)
    this.#connection = core.connection
    this.#myId = joined.playerId
    this.#view = joined.room
    this.#shown = joined.room
  }

  get id() {
    return this.#shown.id
  }

  get code() {
    return this.#shown.code
  }

  get mode() {
    return this.#shown.mode
  }

  get state() {
    return this.#shown.state
  }

  get players() {
    return this.#shown.players
  }

  get me() {
    return this.#shown.players.find(({ id }) => id === this.#myId)
  }

  get hostId() {
    return this.#shown.hostId
  }

  get isHost() {
    return this.#shown.hostId === this.#myId
  }

  get teams() {
    return this.#shown.teams ?? []
  }

  get snapshot() {
    return this.#shown
  }

  get closed() {
    return this.#closed
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

  iceServers(): Promise<RtcServers> {
    // Nobody else has what was just received, so the game may change it.
    return this.#request("iceServers", undefined) as Promise<RtcServers>
  }

  async lock(locked = true): Promise<void> {
    await this.#request("lock", { locked })
  }

  async moderate(op: RoomModerateOp, playerId: string, options?: ModerateOptions): Promise<void> {
    await this.#request("roomModerate", { ...options, op, playerId })
  }

  kick(playerId: string, reason?: string): Promise<void> {
    return this.moderate("kick", playerId, reason === undefined ? {} : { reason })
  }

  async vote(op: VoteOp, playerId?: string): Promise<string> {
    const vote = { op, playerId } as FramePayload<"vote">
    return (await this.#request("vote", vote)).voteId
  }

  async castVote(voteId: string, yes: boolean): Promise<void> {
    await this.#request("vote", { voteId, yes })
  }

  async setTeam(team: string): Promise<void> {
    await this.#request("setTeam", { team })
  }

  async leave(): Promise<void> {
    await this.#request("leave", undefined)
    this.end({ reason: "left" })
  }

  /** Handles an event of this room. */
  receive(event: RoomEvent): void {
    if (this.#closed !== undefined) return
    const before = this.#shown
    this.#view = applyEvent(this.#view, event)
    const first = this.#predicted.findIndex((change) => confirms(event, change))
    this.#show(this.#predicted.filter((_, index) => index !== first))
    this.emit(event.t, event)
    if (this.#shown !== before) this.emit("change", this)
    if (event.t === "room_closed" || event.t === "removed") this.end({ reason: event.reason })
    if (event.t === "player_left" && event.playerId === this.#myId) this.end({ reason: "removed" })
  }

  /** Shows a change until the service confirms or refuses it. */
  async #predict(change: StateChange, send: () => Promise<void>): Promise<void> {
    this.#show([...this.#predicted, change])
    this.emit("change", this)
    try {
      await send()
    } finally {
      if (this.#predicted.includes(change)) {
        this.#show(this.#predicted.filter((each) => each !== change))
        this.emit("change", this)
      }
    }
  }

  #show(predicted: ReadonlyArray<StateChange>): void {
    this.#predicted = predicted
    this.#shown = predicted.reduce(applyEvent, this.#view)
  }

  /** Closes the room for this client. */
  end(closed: RoomClosed): void {
    if (this.#closed !== undefined) return
    this.#closed = closed
    this.emit("closed", closed)
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
    return Promise.reject(new ClientError("not_in_room", `${frame}: the room is closed.`))
  }
}
