/**
 * A media process on werift, WebRTC in JavaScript, for the voice benchmark. The calls and the forwarding
 * are those of the service; only the driver differs.
 *
 * Arguments: none that matter; werift takes any free port.
 */
import {
  MediaStreamTrack,
  RTCPeerConnection,
  RTCRtpCodecParameters,
  useAudioLevelIndication
} from "werift"
import { MediaRooms } from "../../../src/server/features/voice/media-rooms.ts"

const opus = () =>
  new RTCRtpCodecParameters({
    mimeType: "audio/opus",
    clockRate: 48_000,
    channels: 2,
    payloadType: 111
  })

/** werift names the lines by number, the service by purpose. */
const nameOf = (number) => (number === 0 ? "mic" : `s${number - 1}`)

const renamed = (sdp, rename) =>
  sdp
    .replaceAll(/^a=mid:(\S+)/gm, (_, mid) => `a=mid:${rename(mid)}`)
    .replaceAll(
      /^a=group:BUNDLE (.*\S)/gm,
      (_, mids) => `a=group:BUNDLE ${mids.split(" ").map(rename).join(" ")}`
    )

class WeriftPeer {
  #connection = new RTCPeerConnection({
    codecs: { audio: [opus()] },
    headerExtensions: { audio: [useAudioLevelIndication()] },
    iceServers: [],
    bundlePolicy: "max-bundle"
  })
  #senders
  #candidates = []
  #events

  constructor(slots, events) {
    this.#events = events
    const microphone = this.#connection.addTransceiver("audio", { direction: "recvonly" })
    microphone.onTrack.subscribe((track) =>
      track.onReceiveRtp.subscribe((packet) => events.onPacket(packet.serialize()))
    )
    this.#senders = Array.from({ length: slots }, () => {
      const track = new MediaStreamTrack({ kind: "audio" })
      return this.#connection.addTransceiver(track, { direction: "sendonly" }).sender
    })
    this.#connection.connectionStateChange.subscribe((state) => {
      if (state === "connected" || state === "disconnected") events.onState(state)
      if (state === "failed" || state === "closed") events.onState("closed")
    })
  }

  async offer() {
    await this.#connection.setLocalDescription(await this.#connection.createOffer())
    const { sdp } = this.#connection.localDescription
    this.#candidates = [...new Set(sdp.match(/candidate:.* typ host.*/g) ?? [])].map(
      (candidate) => ({ candidate, sdpMid: "mic" })
    )
    const plain = sdp.replaceAll(/^a=(?:candidate:|end-of-candidates).*\r?\n/gm, "")
    return renamed(plain, (mid) => nameOf(Number(mid)))
  }

  answer(sdp) {
    const numbers = new Map(this.#senders.map((_, slot) => [nameOf(slot + 1), slot + 1]))
    const answer = renamed(sdp, (mid) => String(numbers.get(mid) ?? 0))
    this.#connection
      .setRemoteDescription({ type: "answer", sdp: answer })
      .catch(() => this.#events.onState("closed"))
    return this.#candidates
  }

  send(slot, packet) {
    this.#senders[slot]?.sendRtp(packet).catch(() => undefined)
  }

  close() {
    void this.#connection.close()
  }
}

const report = (message) => void process.send?.(message)
const driver = { open: (_session, ssrcs, events) => new WeriftPeer(ssrcs.length, events) }
const rooms = new MediaRooms(driver, report, () => performance.now())
process.on("message", (request) => rooms.handle(request))
process.on("disconnect", () => process.exit(0))
setInterval(() => rooms.tick(), 100)
report({ t: "ready" })
