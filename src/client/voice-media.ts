/** The connection of a call to the media server, and what both kinds of media share. */
import type { Connection } from "./connection.ts"
import type { Timers } from "./timers.ts"
import type { Sounds } from "./voice-sounds.ts"
import type { VoiceEvent, VoiceMember } from "./wire.ts"

/** Dependencies of media on their call. */
export interface MediaContext {
  readonly channel: string
  readonly connection: Connection
  readonly timers: Timers
  readonly sounds: Sounds
  /** Servers with credentials that have not expired. */
  servers(): Promise<RTCConfiguration>
  track(): MediaStreamTrack | null
  /** Reports that the connection is lost for good. */
  failed(): void
}

/** The media of one session of a call. */
export interface CallMedia {
  receive(event: VoiceEvent): void
  setMembers(members: ReadonlyArray<VoiceMember>): void
  /** Takes the track of the call. */
  setTrack(): void
  close(): void
}

type Offer = Extract<VoiceEvent, { readonly t: "voice_sfu_offer" }>

/** A connection that is lost returns within this time, or is replaced. */
export const lostMillis = 5000

/** Runs when a connection fails, or is not there after some seconds; returns a function that stops. */
export const watchPeer = (peer: RTCPeerConnection, timers: Timers, lost: () => void) => {
  let cancel = timers.after(2 * lostMillis, lost)
  peer.onconnectionstatechange = () => {
    const { connectionState: state } = peer
    if (state === "connected") cancel()
    if (state === "failed") lost()
    if (state === "disconnected") cancel = timers.after(lostMillis, lost)
  }
  return () => {
    cancel()
    peer.onconnectionstatechange = null
  }
}

export class ServerMedia implements CallMedia {
  readonly #context: MediaContext
  readonly #session: string
  #gen = -1
  #sender: RTCRtpSender | undefined
  #closePeer = () => {}

  constructor(context: MediaContext, session: string) {
    this.#context = context
    this.#session = session
  }

  receive(event: VoiceEvent): void {
    if (event.t !== "voice_sfu_offer" || event.session !== this.#session) return
    if (event.gen <= this.#gen) return
    this.#gen = event.gen
    this.#answer(event).catch(() => {
      if (this.#gen === event.gen) this.#context.failed()
    })
  }

  setMembers(): void {}

  setTrack(): void {
    void this.#sender?.replaceTrack(this.#context.track())
  }

  close(): void {
    this.#gen = Infinity
    this.#closePeer()
  }

  async #answer({ gen, publishMid, sdp, slots }: Offer): Promise<void> {
    const { channel, connection, servers, sounds, timers, track } = this.#context
    const configuration = await servers()
    if (this.#gen !== gen) return
    this.#closePeer()
    const peer = new RTCPeerConnection(configuration)
    const unwatch = watchPeer(peer, timers, this.#context.failed)
    this.#closePeer = () => {
      unwatch()
      peer.close()
    }
    peer.ontrack = ({ receiver, transceiver: { mid } }) => {
      if (mid !== null && slots.includes(mid)) sounds.play(mid, receiver)
    }
    await peer.setRemoteDescription({ type: "offer", sdp })
    const line = peer.getTransceivers().find(({ mid }) => mid === publishMid)
    if (line !== undefined) {
      line.direction = "sendonly"
      this.#sender = line.sender
      await line.sender.replaceTrack(track())
    }
    await peer.setLocalDescription()
    const answer = { channel, session: this.#session, gen, sdp: peer.localDescription?.sdp ?? "" }
    const { candidates } = await connection.request("voiceAnswer", answer)
    for (const candidate of candidates) await peer.addIceCandidate(candidate)
  }
}
