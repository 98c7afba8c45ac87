/**
 * The connections of a peer-to-peer call, one to each other member. The one with the smaller id offers.
 * The generation of an offer is a clock reading, so that it also grows over the joins of a player.
 */
import { type CallMedia, type MediaContext, watchPeer } from "./voice-media.ts"
import type { VoiceEvent, VoiceMember } from "./wire.ts"

type Signal = Extract<VoiceEvent, { readonly t: "voice_signal" }>

class PeerLink {
  /** Session of the other member, once the list of members has named it. */
  session: string | undefined
  readonly #context: MediaContext
  readonly #id: string
  #gen = -1
  #peer: RTCPeerConnection | undefined
  #sender: RTCRtpSender | undefined
  #unwatch = () => {}
  #steps: Promise<unknown> = Promise.resolve()

  constructor(context: MediaContext, id: string) {
    this.#context = context
    this.#id = id
    if (this.#offers) this.#queue(() => this.#offer())
    else this.#awaitOffer()
  }

  get #offers(): boolean {
    return (this.#context.connection.playerId ?? "") < this.#id
  }

  receive(signal: Signal): void {
    this.#queue(() => this.#take(signal))
  }

  setTrack(): void {
    void this.#sender?.replaceTrack(this.#context.track())
  }

  close(): void {
    this.#steps = this.#steps.then(() => this.#end())
    this.#end()
    this.#gen = Infinity
  }

  #end(): void {
    this.#unwatch()
    this.#peer?.close()
    this.#peer = undefined
    this.#context.sounds.stop(this.#id)
  }

  /** Runs the steps of the connection in turn. A failed one leaves it to the watch. */
  #queue(step: () => Promise<void>): void {
    this.#steps = this.#steps.then(async () => {
      if (this.#gen !== Infinity) await step()
    })
    this.#steps = this.#steps.catch(() => undefined)
  }

  #awaitOffer(): void {
    this.#unwatch()
    this.#unwatch = this.#context.timers.after(10_000, () => this.#renew())
  }

  #renew(): void {
    if (this.#offers) this.#queue(() => this.#offer())
    else {
      this.#awaitOffer()
      this.#send("restart", null).catch(() => undefined)
    }
  }

  async #send(kind: Signal["kind"], data: unknown): Promise<void> {
    const { channel, connection } = this.#context
    const gen = Math.max(this.#gen, 0)
    await connection.request("voiceSignal", { channel, to: this.#id, kind, data, gen })
  }

  async #open(gen: number): Promise<RTCPeerConnection> {
    const { servers, sounds, timers } = this.#context
    this.#end()
    this.#gen = gen
    const peer = new RTCPeerConnection(await servers())
    this.#peer = peer
    this.#unwatch = watchPeer(peer, timers, () => this.#renew())
    peer.ontrack = ({ receiver }) => sounds.play(this.#id, receiver)
    peer.onicecandidate = ({ candidate }) => {
      if (candidate !== null && this.#gen === gen) {
        this.#send("candidate", candidate.toJSON()).catch(() => undefined)
      }
    }
    return peer
  }

  async #offer(): Promise<void> {
    const gen = Math.max(this.#gen + 1, Math.floor(this.#context.timers.now()))
    const peer = await this.#open(gen)
    const line = peer.addTransceiver("audio", { direction: "sendrecv" })
    await this.#describe(peer, line, "offer")
  }

  async #describe(peer: RTCPeerConnection, line: RTCRtpTransceiver, kind: "offer" | "answer") {
    this.#sender = line.sender
    await line.sender.replaceTrack(this.#context.track())
    await peer.setLocalDescription()
    await this.#send(kind, { type: kind, sdp: peer.localDescription?.sdp })
  }

  async #take({ data, gen = 0, kind }: Signal): Promise<void> {
    if (kind === "restart") return this.#offers ? this.#offer() : undefined
    if (kind === "offer" && !this.#offers && gen > this.#gen) return this.#answer(data, gen)
    if (gen !== this.#gen || this.#peer === undefined) return
    if (kind === "answer") await this.#peer.setRemoteDescription(data as RTCSessionDescriptionInit)
    if (kind === "candidate") await this.#peer.addIceCandidate(data as RTCIceCandidateInit)
  }

  async #answer(offer: unknown, gen: number): Promise<void> {
    const peer = await this.#open(gen)
    await peer.setRemoteDescription(offer as RTCSessionDescriptionInit)
    const [line] = peer.getTransceivers()
    if (line === undefined) return
    line.direction = "sendrecv"
    await this.#describe(peer, line, "answer")
  }
}

export class PeerMedia implements CallMedia {
  readonly #context: MediaContext
  readonly #links = new Map<string, PeerLink>()

  constructor(context: MediaContext) {
    this.#context = context
  }

  receive(event: VoiceEvent): void {
    if (event.t === "voice_signal") this.#link(event.from).receive(event)
  }

  setMembers(members: ReadonlyArray<VoiceMember>): void {
    const ids = new Set(members.map(({ id }) => id))
    for (const id of this.#links.keys()) if (!ids.has(id)) this.#close(id)
    for (const { id, session } of members) {
      if (id === this.#context.connection.playerId) continue
      if ((this.#links.get(id)?.session ?? session) !== session) this.#close(id)
      this.#link(id).session = session
    }
  }

  setTrack(): void {
    for (const link of this.#links.values()) link.setTrack()
  }

  close(): void {
    for (const id of this.#links.keys()) this.#close(id)
  }

  #link(id: string): PeerLink {
    const link = this.#links.get(id) ?? new PeerLink(this.#context, id)
    this.#links.set(id, link)
    return link
  }

  #close(id: string): void {
    this.#links.get(id)?.close()
    this.#links.delete(id)
  }
}
