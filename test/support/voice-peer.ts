/** A member's WebRTC connection to the media server, as a browser makes it: sends tones, counts packets. */
import { spawnSync } from "node:child_process"
import { Audio, PeerConnection, type Track } from "node-datachannel"
import { Clock, Effect, Schedule, type Scope } from "effect"
import { at, type OnlinePlayer } from "#testing/players"

const levelUri = "urn:ietf:params:rtp-hdrext:ssrc-audio-level"
const opus = 111
const packetMillis = 20
const ticks = 960

/** A packet of Opus with this level in -dBov. */
export const tonePacket = (options: {
  readonly ssrc: number
  readonly sequence: number
  readonly level: number
}): Buffer => {
  const packet = Buffer.alloc(60)
  packet.writeUInt8(0x90, 0)
  packet.writeUInt8(opus, 1)
  packet.writeUInt16BE(options.sequence % 0x1_00_00, 2)
  packet.writeUInt32BE((options.sequence * ticks) % 0x1_00_00_00_00, 4)
  packet.writeUInt32BE(options.ssrc, 8)
  packet.writeUInt16BE(0xbe_de, 12)
  packet.writeUInt16BE(1, 14)
  packet.writeUInt8(0x10, 16)
  packet.writeUInt8(0x80 | options.level, 17)
  return packet
}

interface PeerOptions {
  /** The address of this end. */
  readonly bindAddress?: string
  /** Receives all decrypted packets. */
  readonly onPacket?: (packet: Buffer) => void
}

export class VoicePeer {
  readonly connection: PeerConnection
  /** Packets received on each slot. */
  readonly heard = new Map<string, number>()
  readonly #tracks: Array<Track> = []
  /** Packets sent. */
  sent = 0
  #timer: NodeJS.Timeout | undefined

  constructor(name: string, { bindAddress, onPacket }: PeerOptions = {}) {
    this.connection = new PeerConnection(name, {
      iceServers: [],
      disableAutoNegotiation: true,
      ...(bindAddress === undefined ? {} : { bindAddress })
    })
    this.connection.onTrack((track) => {
      this.#tracks.push(track)
      track.onMessage((packet) => {
        onPacket?.(packet)
        if ((packet.readUInt8(1) & 0x7f) !== opus) return
        this.heard.set(track.mid(), this.total(track.mid()) + 1)
      })
    })
  }

  /** Packets received on a slot, or on all. */
  total(slot?: string): number {
    if (slot !== undefined) return this.heard.get(slot) ?? 0
    let total = 0
    for (const count of this.heard.values()) total += count
    return total
  }

  /** Answers an offer; the SDP has no candidates. */
  answer(sdp: string, mid: string): Promise<string> {
    return new Promise((resolve) => {
      this.connection.onLocalDescription((answer) => resolve(answer))
      this.connection.setRemoteDescription(sdp, "offer")
      const microphone = new Audio(mid, "SendOnly")
      microphone.addOpusCodec(opus)
      microphone.addSSRC(this.#ssrc, "me", "me", "me")
      microphone.parseSdpLine(`a=extmap:1 ${levelUri}`)
      this.#tracks.push(this.connection.addTrack(microphone))
      this.connection.setLocalDescription("answer")
    })
  }

  /** Speaks at this level until `silence`. */
  speak(level = 20): void {
    this.silence()
    this.#timer = setInterval(() => {
      const microphone = this.#tracks.find((track) => track.direction() === "SendOnly")
      if (microphone?.isOpen() !== true) return
      this.sent += 1
      microphone.sendMessageBinary(tonePacket({ ssrc: this.#ssrc, sequence: this.sent, level }))
    }, packetMillis)
  }

  /** Sends any packet, also one that no browser would send. */
  raw(packet: Buffer): void {
    const microphone = this.#tracks.find((track) => track.direction() === "SendOnly")
    if (microphone?.isOpen() === true) microphone.sendMessageBinary(packet)
  }

  silence(): void {
    clearInterval(this.#timer)
  }

  close(): void {
    this.silence()
    this.connection.close()
  }

  get #ssrc(): number {
    return 77
  }
}

/** Joins the call of a channel, and connects to the media server. */
export const connectVoice = Effect.fnUntraced(function* (
  { id, socket }: OnlinePlayer,
  channel: string,
  /** `through` changes the candidates of the media server. */
  {
    through = (text) => text,
    ...options
  }: PeerOptions & {
    readonly through?: (candidate: string) => string
  } = {}
): Effect.fn.Return<{ readonly peer: VoicePeer; readonly session: string }, Error, Scope.Scope> {
  const joined = yield* Effect.repeat(socket.request({ t: "voiceJoin", channel }), {
    // On a busy machine a media process takes long to start.
    until: (reply) => at(reply, "error", "code") !== "voice_unavailable",
    times: 10
  })
  const session = String(at(joined, "data", "session"))
  const offer = yield* socket.next("voice_sfu_offer", (frame) => frame["session"] === session)
  const peer = yield* Effect.acquireRelease(
    Effect.sync(() => new VoicePeer(id, options)),
    (held) => Effect.sync(() => held.close())
  )
  const sdp = yield* Effect.promise(() =>
    peer.answer(String(offer["sdp"]), String(offer["publishMid"]))
  )
  const gen = offer["gen"]
  const answered = yield* socket.request({ t: "voiceAnswer", channel, session, gen, sdp })
  const candidates = at(answered, "data", "candidates")
  if (!Array.isArray(candidates)) return yield* Effect.die(new Error(JSON.stringify(answered)))
  for (const candidate of candidates) {
    const [text, mid] = [at(candidate, "candidate"), at(candidate, "sdpMid")]
    peer.connection.addRemoteCandidate(through(String(text)), String(mid))
  }
  yield* eventually(() => peer.connection.state() === "connected", `${id} connects`)
  return { peer, session }
})

/** The media processes that a process has started, the oldest first; one of them is a spare. */
export const mediaProcessesOf = (runner: number): ReadonlyArray<number> => {
  const list = spawnSync("ps", ["-A", "-o", "pid=,ppid=,args="], { encoding: "utf8" }).stdout
  return list.split("\n").flatMap((line) => {
    const [pid, parent] = line.trim().split(/\s+/)
    return Number(parent) === runner && line.includes("media-process.ts") ? [Number(pid)] : []
  })
}

/** Those of this process. */
export const mediaProcesses = Effect.sync(() => mediaProcessesOf(process.pid))

/** Waits until a condition holds, on the clock of the machine also where a test has one of its own. */
export const eventually = (condition: () => boolean, what: string): Effect.Effect<void> =>
  Effect.sync(condition).pipe(
    Effect.filterOrFail((holds) => holds),
    Effect.retry({ times: 1500, schedule: Schedule.spaced(20) }),
    Effect.provideService(Clock.Clock, Clock.Clock.defaultValue()),
    Effect.mapError(() => new Error(`Waited in vain: ${what}`)),
    Effect.orDie,
    Effect.asVoid
  )
