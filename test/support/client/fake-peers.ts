/** WebRTC in memory: connections that find each other by their descriptions, and that a test breaks. */
import type {
  DataChannelLike,
  PeerConnectionClass,
  PeerConnectionLike,
  PeerDescription
} from "#client/client"

type Listener = (event: { readonly type: string; readonly data?: unknown }) => void

class Events {
  readonly #target = new Map<string, Array<Listener>>()

  addEventListener(name: string, listener: Listener): void {
    this.#target.set(name, [...(this.#target.get(name) ?? []), listener])
  }

  /** Runs the listeners later, as a platform does. */
  emit(type: string, event: object = {}): void {
    setImmediate(() => {
      for (const listener of this.#target.get(type) ?? []) listener({ type, ...event })
    })
  }
}

class FakeChannel extends Events implements DataChannelLike {
  readyState = "connecting"
  bufferedAmount = 0
  other: FakeChannel | undefined

  send(data: string): void {
    if (this.readyState !== "open") throw new Error("InvalidStateError")
    this.other?.emit("message", { data })
  }

  set(state: "open" | "closed"): void {
    if (this.readyState === state) return
    this.readyState = state
    this.emit(state === "open" ? "open" : "close")
  }
}

/** The network between the connections of a test. */
export class FakePeers {
  /** Connections made so far. */
  made = 0
  /** Whether no candidate leads anywhere. */
  isBlocked = false
  readonly #connections = new Map<string, FakeConnection>()

  /** The class of this network. */
  get RTCPeerConnection(): PeerConnectionClass {
    return classIn(this)
  }

  add(connection: FakeConnection): void {
    this.#connections.set(connection.sdp, connection)
  }

  find(sdp: string): FakeConnection | undefined {
    return this.#connections.get(sdp)
  }

  /** Delivers a text on every open channel. */
  inject(data: string): void {
    for (const { channels } of this.#connections.values()) {
      for (const channel of channels)
        if (channel.readyState === "open") channel.emit("message", { data })
    }
  }

  /** Ends every open path. Both ends find out. */
  cut(): void {
    for (const connection of this.#connections.values()) {
      if (connection.connectionState === "connected") connection.set("failed")
    }
  }
}

class FakeConnection extends Events implements PeerConnectionLike {
  readonly sdp: string
  readonly #network: FakePeers
  readonly channels: Array<FakeChannel> = []
  connectionState = "new"
  remote = ""
  hasCandidate = false

  constructor(network: FakePeers, sdp: string) {
    super()
    this.#network = network
    this.sdp = sdp
  }

  createDataChannel(_label: string, { id }: { readonly id: number }): FakeChannel {
    const channel = new FakeChannel()
    this.channels[id] = channel
    return channel
  }

  async createOffer(): Promise<PeerDescription> {
    return { type: "offer", sdp: this.sdp }
  }

  async createAnswer(): Promise<PeerDescription> {
    return { type: "answer", sdp: this.sdp }
  }

  async setLocalDescription(): Promise<void> {
    const candidate = { candidate: "candidate:1 1 udp 1 127.0.0.2 5 typ relay" }
    this.emit("icecandidate", { candidate: { toJSON: () => candidate } })
    this.emit("icecandidate", { candidate: null })
  }

  async setRemoteDescription({ sdp = "" }: PeerDescription): Promise<void> {
    if (this.#network.find(sdp) === undefined) throw new TypeError("no description")
    this.remote = sdp
  }

  async addIceCandidate(candidate: object): Promise<void> {
    if (!("candidate" in candidate)) throw new TypeError("no candidate")
    this.hasCandidate = true
    this.#connect()
  }

  close(): void {
    const remote = this.#network.find(this.remote)
    this.set("closed")
    if (remote?.remote === this.sdp) for (const channel of remote.channels) channel.set("closed")
  }

  set(state: "connected" | "failed" | "closed"): void {
    if (this.connectionState === "closed") return
    this.connectionState = state
    this.emit("connectionstatechange")
    if (state !== "connected") for (const channel of this.channels) channel.set("closed")
  }

  /** Opens the channels once both ends have a description and a candidate of the other. */
  #connect(): void {
    const other = this.#network.find(this.remote)
    if (this.#network.isBlocked || other?.remote !== this.sdp || !other.hasCandidate) return
    for (const [end, far] of [
      [this, other],
      [other, this]
    ] as const) {
      end.set("connected")
      for (const [id, channel] of end.channels.entries()) {
        channel.other = far.channels[id]
        channel.set("open")
      }
    }
  }
}

const classIn = (network: FakePeers): PeerConnectionClass =>
  class extends FakeConnection {
    constructor() {
      super(network, `sdp-${++network.made}`)
      network.add(this)
    }
  }
