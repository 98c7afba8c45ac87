/**
 * The mesh of a peer-to-peer room: one link to each other member, and the service as the way to members
 * without open channels. Game code loads this module on demand.
 */
import type { Core } from "./core.ts"
import type { Unsubscribe } from "./emitter.ts"
import type { PeerConnectionClass, RtcServers } from "./peer-connection.ts"
import { PeerLink } from "./peer-link.ts"
import type { PeerOptions, PeerRoute, PeerSendOptions, Room, RoomEvents } from "./room.ts"

/** Maximum characters of a text that a peer sends; the data in it is bounded as over the service. */
const textMaxCharacters = 64 * 1024
/** Bound of the data of a message, as JSON in UTF-8 bytes: that of `send` over the service. */
const dataMaxBytes = 16 * 1024
const typeMaxCharacters = 64
/** Time before their expiry at which the client renews credentials. */
const renewalMillis = 5 * 60_000

/** The room of a mesh. */
export interface MeshRoom extends Pick<
  Room,
  "closed" | "iceServers" | "me" | "on" | "players" | "send" | "signal"
> {
  emit<Name extends "message" | "peer" | "warn">(name: Name, event: RoomEvents[Name]): void
}

const classOf = ({ RTCPeerConnection }: PeerOptions): PeerConnectionClass => {
  const found = RTCPeerConnection ?? globalThis.RTCPeerConnection
  if (found !== undefined) return found
  throw new TypeError("No RTCPeerConnection here: pass a class as the option RTCPeerConnection.")
}

/** Returns a message as text; undefined if the service would refuse it, which then reports why. */
const textOf = (type: string, data: unknown): string | undefined => {
  if (type.length > typeMaxCharacters) return undefined
  try {
    if (data === undefined) return JSON.stringify([type])
    const { length } = new TextEncoder().encode(JSON.stringify(data))
    return length > dataMaxBytes ? undefined : JSON.stringify([type, data])
  } catch {
    return undefined
  }
}

export class PeerMesh {
  readonly #room: MeshRoom
  readonly #core: Core
  readonly #RTCPeerConnection: PeerConnectionClass
  readonly #links = new Map<string, PeerLink>()
  readonly #subscriptions: ReadonlyArray<Unsubscribe>
  #servers: Promise<RtcServers> | undefined

  constructor(room: MeshRoom, core: Core, options: PeerOptions = {}) {
    this.#room = room
    this.#core = core
    this.#RTCPeerConnection = classOf(options)
    const begin = () => this.#begin()
    this.#subscriptions = [
      room.on("signal", (signal) => this.#link(signal.from)?.receive(signal)),
      room.on("player_left", ({ playerId }) => this.#drop(playerId)),
      room.on("player_reconnected", ({ playerId }) => this.#link(playerId)?.begin()),
      room.on("reconnected", begin),
      room.on("closed", () => this.close())
    ]
  }

  /** Checks that this player may use the mesh, and begins all links. */
  async start(): Promise<void> {
    await this.#currentServers()
    this.#begin()
  }

  send(type: string, data: unknown, { reliable = true, to }: PeerSendOptions = {}): void {
    const text = textOf(type, data)
    const recipients = to ?? this.#others()
    const isDirect = (id: string) =>
      text !== undefined && this.#links.get(id)?.send(text, reliable) === true
    const rest = recipients.filter((id) => !isDirect(id))
    if (rest.length === 0) return
    const isForAll = to === undefined && rest.length === recipients.length
    this.#room.send(type, data, isForAll ? {} : { to: rest })
  }

  route(playerId: string): PeerRoute {
    return this.#links.get(playerId)?.route ?? "server"
  }

  close(): void {
    for (const unsubscribe of this.#subscriptions) unsubscribe()
    for (const id of this.#links.keys()) this.#drop(id)
  }

  #begin(): void {
    for (const id of this.#others()) this.#link(id)?.begin()
  }

  #others(): ReadonlyArray<string> {
    const { me, players } = this.#room
    return players.flatMap(({ id }) => (id === me?.id ? [] : [id]))
  }

  /** The link to a member; undefined if there is no such member. */
  #link(playerId: string): PeerLink | undefined {
    const existing = this.#links.get(playerId)
    const { me, players } = this.#room
    const isOther = playerId !== me?.id && players.some(({ id }) => id === playerId)
    if (existing !== undefined || me === undefined || !isOther) return existing
    const { log, timers } = this.#core
    const link = new PeerLink({
      isCaller: me.id < playerId,
      timers,
      log,
      RTCPeerConnection: this.#RTCPeerConnection,
      servers: () => this.#currentServers(),
      signal: (step) => this.#room.signal({ ...step, to: playerId }),
      received: (text) => this.#receive(playerId, text),
      routed: (route) => this.#room.emit("peer", { playerId, route })
    })
    this.#links.set(playerId, link)
    return link
  }

  #drop(playerId: string): void {
    this.#links.get(playerId)?.close()
    this.#links.delete(playerId)
  }

  /** Handles a message of a peer: `[type]` or `[type, data]`. It ignores other texts. */
  #receive(from: string, text: string): void {
    if (text.length > textMaxCharacters) return
    try {
      const message: unknown = JSON.parse(text)
      if (!Array.isArray(message)) return
      const [type, data]: ReadonlyArray<unknown> = message
      if (typeof type !== "string" || type.length > typeMaxCharacters) return
      const at = this.#core.clock.now()
      const event = { t: "message" as const, from, type, at }
      this.#room.emit("message", data === undefined ? event : { ...event, data })
    } catch (error) {
      this.#core.log("peer", error)
    }
  }

  /** The STUN and TURN servers, whose credentials are valid for a while. */
  async #currentServers(): Promise<RtcServers> {
    const { clock } = this.#core
    const known = await this.#servers?.catch(() => undefined)
    if (known !== undefined && Date.parse(known.expiresAt) - clock.now() > renewalMillis)
      return known
    this.#servers = this.#room.iceServers()
    return this.#servers
  }
}
