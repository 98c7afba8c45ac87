/**
 * Media driver on libdatachannel: SRTP in native code, with all members of a process on one UDP port.
 */
import { networkInterfaces } from "node:os"
import { Audio, IceUdpMuxListener, initLogger, PeerConnection, type Track } from "node-datachannel"
import {
  type Candidate,
  type MediaDriver,
  type MediaPeer,
  microphoneMid,
  type PeerEvents,
  slotMid,
  withoutCandidates
} from "./media-driver.ts"
import { levelExtension, opusType } from "./rtp.ts"

const opusParameters = "minptime=10;useinbandfec=1;usedtx=1"
const levelUri = "urn:ietf:params:rtp-hdrext:ssrc-audio-level"

const opusLine = (mid: string, direction: "RecvOnly" | "SendOnly"): Audio => {
  const line = new Audio(mid, direction)
  line.addOpusCodec(opusType, opusParameters)
  return line
}

/** Returns the addresses at which members reach this machine. */
const ownAddresses = (): ReadonlyArray<string> =>
  Object.values(networkInterfaces()).flatMap((each) =>
    (each ?? []).flatMap(({ address, family }) => (family === "IPv4" ? [address] : []))
  )

const hostPriority = 2_122_260_223
const priorityStep = 256

/** Returns host candidates of these addresses, the preferred one first. */
const candidatesOf = (addresses: ReadonlyArray<string>, port: number): ReadonlyArray<Candidate> =>
  addresses.map((address, i) => {
    const priority = hostPriority - i * priorityStep
    const candidate = `candidate:${i + 1} 1 udp ${priority} ${address} ${port} typ host`
    return { candidate, sdpMid: microphoneMid }
  })

const states = {
  connected: "connected",
  disconnected: "disconnected",
  failed: "closed",
  closed: "closed"
} as const

class DataChannelPeer implements MediaPeer {
  readonly #connection: PeerConnection
  /**
   * Reference to the track. Without it the garbage collector takes the track, and the library stops
   * delivering its packets.
   */
  readonly #microphone: Track
  readonly #slots: ReadonlyArray<Track>
  readonly #candidates: ReadonlyArray<Candidate>
  #isClosed = false

  constructor(options: {
    readonly session: string
    readonly ssrcs: ReadonlyArray<number>
    readonly port: number
    readonly candidates: ReadonlyArray<Candidate>
    readonly events: PeerEvents
  }) {
    const { candidates, events, port, session, ssrcs } = options
    this.#candidates = candidates
    this.#connection = new PeerConnection(session, {
      iceServers: [],
      enableIceUdpMux: true,
      portRangeBegin: port,
      portRangeEnd: port,
      disableAutoNegotiation: true
    })
    const microphone = opusLine(microphoneMid, "RecvOnly")
    microphone.parseSdpLine(`a=extmap:${levelExtension} ${levelUri}`)
    this.#microphone = this.#connection.addTrack(microphone)
    this.#microphone.onMessage((packet) => {
      if (!this.#isClosed) events.onPacket(packet)
    })
    this.#slots = ssrcs.map((ssrc, slot) => {
      const line = opusLine(slotMid(slot), "SendOnly")
      line.addSSRC(ssrc, "voice", slotMid(slot), slotMid(slot))
      const track = this.#connection.addTrack(line)
      // Without a reader, the library would keep the member's reports (RTCP) on what it has received.
      track.onMessage((packet) => {
        if (!this.#isClosed) events.onPacket(packet)
      })
      return track
    })
    this.#connection.onStateChange((state) => {
      if (!this.#isClosed && state in states) {
        events.onState(states[state as keyof typeof states])
      }
    })
  }

  offer(): Promise<string> {
    return new Promise((resolve) => {
      this.#connection.onLocalDescription((sdp) => resolve(withoutCandidates(sdp)))
      this.#connection.setLocalDescription("offer")
    })
  }

  answer(sdp: string): ReadonlyArray<Candidate> {
    this.#connection.setRemoteDescription(withoutCandidates(sdp), "answer")
    return this.#candidates
  }

  send(slot: number, packet: Buffer): void {
    const track = this.#slots[slot]
    if (!this.#isClosed && track?.isOpen() === true) track.sendMessageBinary(packet)
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#microphone.close()
    this.#connection.close()
  }
}

/**
 * Listeners that hold the port of this process from its start. Without one, a taken port would end the
 * process.
 */
const listeners: Array<IceUdpMuxListener> = []

/**
 * Returns a driver on this UDP port; throws if the port is taken. Members reach it at the public
 * address, or at all own addresses.
 */
export const dataChannelDriver = (options: {
  readonly port: number
  readonly publicIp: string | undefined
  readonly onLog: (level: string, message: string) => void
}): MediaDriver => {
  const { onLog, port, publicIp } = options
  initLogger("Warning", onLog)
  listeners.push(new IceUdpMuxListener(port))
  const addresses = publicIp === undefined ? ownAddresses() : [publicIp]
  const candidates = candidatesOf(addresses, port)
  return {
    open: (session, ssrcs, events) =>
      new DataChannelPeer({ session, ssrcs, port, candidates, events })
  }
}
