/**
 * A virtual player: one game client with its sockets, its requests and its view of its room. The view
 * is built from received frames alone. A frame that it cannot apply is a violation.
 */
import { Option, Schema } from "effect"
import { ChannelEvent } from "#rpc/channels/frames"
import { ClientFrames, Reply, Warn, Welcome } from "#rpc/realtime"
import { RoomEvent, type RoomSnapshot } from "#rpc/rooms/events"
import { VoiceEvent } from "#rpc/voice"
import { applyEvent } from "../support/room-harness.ts"
import { ChannelClient, type ChannelTranscript } from "./channel-client.ts"
import type { ChannelRules } from "./channel-rules.ts"
import type { Chance } from "./random.ts"
import type { Runner } from "./runner.ts"
import { type Signal, signalOf } from "./signal-data.ts"
import { PlayerSocket } from "./socket.ts"
import type { Simulator } from "./simulator.ts"
import { VoiceClient } from "./voice-client.ts"

const decode = Schema.decodeUnknownSync(
  Schema.fromJsonString(Schema.Union([Welcome, Warn, Reply, ChannelEvent, RoomEvent, VoiceEvent]))
)

/** Whether the definition of the frame declares this error. */
const isDeclared = (t: string, error: Reply["error"]): boolean => {
  const frame = ClientFrames.requests.get(t)
  if (frame === undefined) return false
  const decoded = Schema.decodeUnknownOption(frame.errorSchema)({ ...error, _tag: error?.code })
  return Option.isSome(decoded)
}

const isOfChannel = (event: RoomEvent | ChannelEvent): event is ChannelEvent => "channel" in event

const isOfVoice = (event: RoomEvent | ChannelEvent | VoiceEvent): event is VoiceEvent =>
  event.t.startsWith("voice_")

export interface Request {
  readonly t: string
  readonly rid: string
  readonly sentAt: number
  /** The value that a `setState` writes. */
  readonly n: number
  /** The value that a `setState` writes to a shared key, or the player whom a host kicks. */
  readonly value: string | undefined
  /** Pending `quickMatch` requests that a `cancelMatch` may cancel. */
  readonly matches: ReadonlyArray<string>
}

/** Frames that a player received in a room on one socket, from `room_joined` on. */
export interface Transcript {
  readonly playerId: string
  readonly connectionId: string
  readonly roomId: string
  readonly frames: Array<string>
}

/** A write (`n`) or a leave that was acknowledged with `ok`. */
export interface Acknowledged {
  readonly playerId: string
  readonly roomId: string
  readonly n: number
  readonly sentAt: number
  readonly at: number
}

/** A write to a shared key that was acknowledged with `ok`; no other write has its value. */
export interface AcknowledgedValue {
  readonly roomId: string
  readonly value: string
  readonly sentAt: number
  readonly at: number
}

/** A pending match request, until the reply or the end of the connection. */
export interface Wait {
  readonly playerId: string
  readonly from: number
  until: number
}

/** What the checks need of all players. */
export interface Ledger {
  readonly waits: Array<Wait>
  readonly transcripts: Array<Transcript>
  readonly channelTranscripts: Array<ChannelTranscript>
  readonly acknowledged: Array<Acknowledged>
  readonly acknowledgedValues: Array<AcknowledgedValue>
  readonly left: Array<Acknowledged>
  /** Kicks that were acknowledged with `ok`, by room and player. */
  readonly kicked: Map<string, Pick<Acknowledged, "at" | "sentAt">>
  /** Rooms known to players, by id. */
  readonly codes: Map<string, string>
  /** How often each frame got which reply. */
  readonly outcomes: Map<string, number>
}

export class Player {
  readonly id: string
  readonly simulator: Simulator
  readonly #chance: Chance
  readonly #ledger: Ledger
  socket: PlayerSocket | undefined
  /** The id of the connection, once the server has sent `welcome`. */
  connectionId: string | undefined
  view: RoomSnapshot | undefined
  readonly channels: ChannelClient
  readonly voice = new VoiceClient(this)
  readonly pending = new Map<string, Request>()
  /** Rooms that this socket has entered. */
  #entered = new Set<string>()
  #transcript: Transcript | undefined
  /** The last message number of each sender since the room was entered. */
  readonly #numbers = new Map<string, number>()
  /** Rooms that closed with their feature. A link that misses their end reports them as lost later. */
  readonly #disabled = new Set<string>()
  /** The last signal of each sender. */
  readonly signals = new Map<string, Signal>()
  readonly #cancelled = new Set<string>()
  readonly #waits = new Map<string, Wait>()
  #counter = 0
  /** A room whose seat the service keeps for the player. */
  kept: string | undefined
  lastClose = 0

  constructor(
    id: string,
    simulator: Simulator,
    chance: Chance,
    ledger: Ledger,
    rules: ChannelRules
  ) {
    this.id = id
    this.simulator = simulator
    this.#chance = chance
    this.#ledger = ledger
    this.channels = new ChannelClient(this, rules)
  }

  get welcome(): boolean {
    return this.socket?.open === true && this.connectionId !== undefined
  }

  waitsFor(t: string): boolean {
    for (const request of this.pending.values()) if (request.t === t) return true
    return false
  }

  /** Opens a socket; an older one stays open until the service closes it or it is dropped. */
  connect(runner: Runner): void {
    this.#forget()
    const socket: PlayerSocket = new PlayerSocket({
      playerId: this.id,
      runner,
      simulator: this.simulator,
      chance: this.#chance,
      events: {
        frame: (text, sentAt) => {
          if (this.socket === socket) this.#hear(text, sentAt)
        },
        closed: (code) => {
          this.simulator.note(`${this.id.slice(-2)} closed with ${code}`)
          if (this.socket === socket) this.#closed(code)
        }
      }
    })
    this.socket = socket
    this.simulator.note(`${this.id.slice(-2)} connects to ${runner.name}`)
  }

  /** Drops the socket on the player's side; the node notices later. */
  drop(noticeMillis: number): void {
    this.simulator.note(`${this.id.slice(-2)} drops (noticed after ${noticeMillis})`)
    this.socket?.leave(noticeMillis)
    this.#forget()
  }

  #closed(code: number): void {
    this.lastClose = code
    this.#forget()
  }

  #forget(): void {
    this.socket = undefined
    this.connectionId = undefined
    this.view = undefined
    this.kept = undefined
    this.pending.clear()
    this.channels.dropped()
    this.voice.dropped()
    this.#entered = new Set()
    this.#transcript = undefined
    this.#cancelled.clear()
    this.#waits.clear()
  }

  #wait(rid: string, from: number): void {
    const wait = { playerId: this.id, from, until: Number.POSITIVE_INFINITY }
    this.#waits.set(rid, wait)
    this.#ledger.waits.push(wait)
  }

  next(): number {
    return ++this.#counter
  }

  /** Sends a frame that expects a reply. */
  ask(
    t: string,
    payload: Readonly<Record<string, unknown>> = {},
    n = 0,
    value: string | undefined = undefined
  ): void {
    const rid = String(this.next())
    const matches = Array.from(this.pending.values()).filter(({ t: of }) => of === "quickMatch")
    const sentAt = this.simulator.now
    this.pending.set(rid, { t, rid, sentAt, n, value, matches: matches.map((match) => match.rid) })
    if (t === "quickMatch") this.#wait(rid, sentAt)
    this.channels.asks(rid, t, payload["channel"])
    this.voice.asks(rid, t, payload["channel"])
    this.simulator.note(`${this.id.slice(-2)} > ${t} ${JSON.stringify(payload)}`)
    this.socket?.say({ t, rid, ...payload })
  }

  /** Writes a value that no other write has. Without confirmation the frame asks for no reply. */
  writeShared(key: string, confirmed: boolean): void {
    const value = `${this.id.slice(-2)}:${this.next()}`
    const patch = { [key]: value }
    if (confirmed) return this.ask("setState", { patch }, 0, value)
    this.simulator.note(`${this.id.slice(-2)} > setState ${JSON.stringify(patch)}, unconfirmed`)
    this.socket?.say({ t: "setState", patch })
  }

  isIn(channel: string): boolean {
    return this.channels.views.has(channel)
  }

  /** The player is out of a channel, and so of its call. */
  left(channel: string): void {
    this.voice.left(channel)
  }

  fault(what: string): void {
    this.simulator.fault(`${this.id} ${what}`)
  }

  #hear(text: string, sentAt: number): void {
    const frame = decode(text)
    if (frame.t !== "message") this.simulator.note(`${this.id.slice(-2)} < ${text.slice(0, 400)}`)
    switch (frame.t) {
      case "welcome":
        this.connectionId = frame.connectionId
        this.kept = frame.rooms[0]?.roomId
        return this.channels.welcomed()
      case "warn":
        return
      case "reply":
        return this.#answered(frame, sentAt)
      default:
        if (isOfVoice(frame)) return this.voice.hear(frame)
        if (!isOfChannel(frame)) return this.#event(frame, text)
        return this.channels.hear(frame, text, this.#ledger.channelTranscripts)
    }
  }

  #event(event: RoomEvent, text: string): void {
    if (event.t === "room_joined") {
      if (this.view !== undefined && this.view.id !== event.room.id) {
        this.fault(`is in ${this.view.id} and enters ${event.room.id}`)
      }
      const { code, id } = event.room
      this.#ledger.codes.set(id, code)
      this.#entered.add(id)
      this.#transcript = {
        playerId: this.id,
        connectionId: this.connectionId ?? "none",
        roomId: id,
        frames: [text]
      }
      this.#ledger.transcripts.push(this.#transcript)
      this.#numbers.clear()
      this.view = event.room
    } else {
      if (event.t === "room_closed" && event.reason === "feature_disabled") {
        this.#disabled.add(event.roomId)
      }
      if (this.view === undefined) {
        if (event.t === "room_closed" && this.#disabled.has(event.roomId)) return
        return this.fault(`is in no room and receives ${text}`)
      }
      this.#transcript?.frames.push(text)
      if (event.t === "player_left" && event.playerId === this.id) return this.#removed()
      if (event.t === "message") this.#inOrder(event.from, Number(Object(event.data).n))
      if (event.t === "signal") this.#signalled(event.from, signalOf(event.data))
      try {
        this.view = applyEvent(this.view, event)
      } catch (error) {
        this.fault(`cannot apply ${text}: ${String(error)}`)
      }
    }
    this.#checkView()
  }

  /** The room has removed the player, who may be online: the ban is over already. */
  #removed(): void {
    this.view = undefined
    this.#transcript = undefined
  }

  #signalled(from: string, signal: Signal): void {
    this.#inOrder(from, signal.n)
    this.signals.set(from, signal)
  }

  /** Messages of a sender keep their order, and none arrives twice. */
  #inOrder(from: string, n: number): void {
    const last = this.#numbers.get(from) ?? 0
    if (n <= last) this.fault(`receives ${n} of ${from} after ${last}`)
    this.#numbers.set(from, n)
  }

  #checkView(): void {
    if (this.view === undefined) return
    const { maxPlayers, players } = this.view
    const ids = new Set(players.map(({ id }) => id))
    if (ids.size !== players.length) this.fault("sees a player twice")
    if (players.length > maxPlayers) this.fault(`sees ${players.length} on ${maxPlayers} seats`)
    if (!ids.has(this.id)) this.fault("is in a room that does not show it")
  }

  #answered(reply: Reply, sentAt: number): void {
    const request = this.pending.get(reply.rid)
    this.pending.delete(reply.rid)
    if (request === undefined) return this.fault(`receives two replies: ${JSON.stringify(reply)}`)
    const wait = this.#waits.get(reply.rid)
    if (wait !== undefined) wait.until = sentAt
    const outcome = `${request.t} ${reply.ok ? "ok" : (reply.error?.code ?? "?")}`
    this.#ledger.outcomes.set(outcome, (this.#ledger.outcomes.get(outcome) ?? 0) + 1)
    this.voice.answered(reply)
    this.channels.answered(reply)
    if (!reply.ok) {
      if (!isDeclared(request.t, reply.error)) this.fault(`got an undeclared error: ${outcome}`)
      return
    }
    const data = new Map(Object.entries(Object(reply.data)))
    switch (request.t) {
      case "create":
      case "join":
      case "resume":
      case "quickMatch":
        return this.#hasEntered(request, String(data.get("roomId")), sentAt)
      case "cancelMatch":
        if (data.get("cancelled") === true && request.matches.length === 1) {
          for (const rid of request.matches) this.#cancelled.add(rid)
        }
        return
      case "leave":
        this.#note(this.#ledger.left, request, sentAt)
        this.view = undefined
        this.#transcript = undefined
        return
      case "roomModerate":
        if (request.value !== undefined && this.view !== undefined) {
          const kick = { sentAt: request.sentAt, at: sentAt }
          this.#ledger.kicked.set(`${this.view.id} ${request.value}`, kick)
        }
        return
      case "setState":
        if (request.value === undefined) this.#note(this.#ledger.acknowledged, request, sentAt)
        else this.#noteValue(request.value, request.sentAt, sentAt)
    }
  }

  #note(list: Array<Acknowledged>, { n, sentAt }: Request, at: number): void {
    if (this.view === undefined) return
    list.push({ playerId: this.id, roomId: this.view.id, n, sentAt, at })
  }

  #noteValue(value: string, sentAt: number, at: number): void {
    if (this.view === undefined) return
    this.#ledger.acknowledgedValues.push({ roomId: this.view.id, value, sentAt, at })
  }

  #hasEntered({ rid, sentAt, t }: Request, roomId: string, at: number): void {
    const kick = this.#ledger.kicked.get(`${roomId} ${this.id}`)
    const isBarred = t === "quickMatch" || at < (kick?.sentAt ?? 0) + 60_000
    if (kick !== undefined && sentAt > kick.at && isBarred) {
      this.fault(`is back in ${roomId} by ${t} after a kick`)
    }
    if (!this.#entered.has(roomId)) this.fault(`${t} is ok before room_joined of ${roomId}`)
    if (this.#cancelled.has(rid)) this.fault("is matched after it cancelled")
  }
}
