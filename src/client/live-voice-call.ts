/** Implementation of {@link VoiceCall}: joins, follows the service's events, and joins again. */
import type { Connection } from "./connection.ts"
import { Emitter } from "./emitter.ts"
import { codeOf } from "./errors.ts"
import type { FrameData } from "./frames.ts"
import { retry, type Timers } from "./timers.ts"
import type { CallClosed, VoiceCall, VoiceCallEvents } from "./voice-call.ts"
import { type CallMedia, ServerMedia } from "./voice-media.ts"
import { type Microphone, openMicrophone } from "./voice-microphone.ts"
import { PeerMedia } from "./voice-peers.ts"
import { Sounds } from "./voice-sounds.ts"
import type { VoiceEvent, VoiceMember } from "./wire.ts"

type Joined = FrameData<"voiceJoin">

/** Age in milliseconds from which TURN credentials count as old. They last ten minutes. */
const serversMillis = 480_000
const speakingMillis = 250
/**
 * Rejoin attempts. The first pause is random, from the half to the whole, so that not all members
 * try at once.
 */
const rejoin = { firstMillis: 500, timeoutMillis: 30_000 }
const rejoinableErrors: ReadonlySet<string | undefined> = new Set([
  "disconnected",
  "rate_limited",
  "timed_out",
  "unavailable",
  "voice_unavailable"
])

/** Level (0 to 1) above which a player counts as speaking. */
const speechLevel = 0.01

export { openMicrophone }

export class LiveVoiceCall implements VoiceCall {
  members: ReadonlyArray<VoiceMember> = []
  speaking: ReadonlyArray<string> = []
  levels: ReadonlyMap<string, number> = new Map()
  muted: boolean
  closed: CallClosed | undefined
  readonly #channel: string
  readonly #connection: Connection
  readonly #timers: Timers
  readonly #emitter = new Emitter<VoiceCallEvents>()
  readonly on: VoiceCall["on"] = this.#emitter.on
  readonly #sounds = new Sounds()
  readonly #volumes = new Map<string, number>()
  #microphone: Microphone | undefined
  #joined: Joined | undefined
  #joinedAt = 0
  #media: CallMedia | undefined
  /** Media events before the reply to a join: an offer may precede the reply with its session. */
  #early: Array<VoiceEvent> = []
  #slots: Readonly<Record<string, string | null>> = {}
  #rejoining: Promise<void> | undefined
  #isSpeaking = false
  #stopTimer = () => {}

  constructor(
    channel: string,
    connection: Connection,
    timers: Timers,
    microphone: Microphone | undefined
  ) {
    this.#channel = channel
    this.#connection = connection
    this.#timers = timers
    this.#useMicrophone(microphone)
    this.muted = microphone === undefined
  }

  get mode() {
    return this.#joined?.mode ?? "p2p"
  }

  async mute(muted = true): Promise<void> {
    this.muted = muted || this.#microphone === undefined
    if (this.#microphone !== undefined) this.#microphone.track.enabled = !this.muted
    this.#emitter.emit("change", this)
    await this.#publish()
  }

  async setMicrophone(microphone: true | MediaTrackConstraints | MediaStreamTrack) {
    const opened = await openMicrophone(microphone)
    if (this.closed !== undefined) return opened?.release()
    this.#microphone?.release()
    this.#useMicrophone(opened)
    this.#media?.setTrack()
    await this.mute(false)
  }

  async devices(): Promise<ReadonlyArray<MediaDeviceInfo>> {
    const devices = await navigator.mediaDevices.enumerateDevices()
    return devices.filter(({ kind }) => kind === "audioinput")
  }

  setVolume(playerId: string, volume: number): void {
    this.#volumes.set(playerId, Math.min(Math.max(volume, 0), 1))
    this.#applyVolumes()
  }

  async leave(): Promise<void> {
    if (this.closed !== undefined) return
    this.end({ reason: "left" })
    await this.#connection.request("voiceLeave", { channel: this.#channel })
  }

  /** Joins, or returns to the session. */
  async enter(): Promise<void> {
    const session = this.#joined?.session
    const payload = { channel: this.#channel, ...(session === undefined ? {} : { session }) }
    const joined = await this.#connection.request("voiceJoin", payload)
    if (this.closed !== undefined) return
    this.#joined = joined
    this.#joinedAt = this.#timers.elapsed()
    if (joined.session !== session) this.#connect(joined)
    const early = this.#early
    this.#early = []
    for (const event of early) this.#media?.receive(event)
    await this.#publish()
  }

  /** Handles an event of this call. */
  receive(event: VoiceEvent): void {
    if (event.t === "voice_closed") {
      this.#lose()
      if (event.retryAfterMs === undefined) return this.end({ reason: event.reason })
      return this.rejoin(event.retryAfterMs)
    }
    if (event.t === "voice_state") {
      this.members = event.members
      this.#media?.setMembers(event.members)
    } else if (event.t === "voice_speaking") {
      this.#slots = { ...this.#slots, ...event.slots }
    } else {
      if (this.#rejoining !== undefined || this.#media === undefined) this.#keep(event)
      this.#media?.receive(event)
      return
    }
    this.#applyVolumes()
    this.#emitter.emit("change", this)
    this.#findSpeakers()
  }

  /** Joins again until it succeeds or time is up. */
  rejoin(delayMillis: number): void {
    if (this.#rejoining !== undefined || this.closed !== undefined) return
    const pauseMillis = (rejoin.firstMillis / 2) * (1 + this.#timers.random())
    this.#emitter.emit("reconnecting", this)
    this.#rejoining = new Promise<void>((resolve) => this.#timers.after(delayMillis, resolve))
      .then(() =>
        retry(
          this.#timers,
          () => this.#return(),
          (error) => this.closed === undefined && rejoinableErrors.has(codeOf(error)),
          pauseMillis,
          rejoin.timeoutMillis
        )
      )
      .then(
        () => {
          this.#rejoining = undefined
          if (this.closed !== undefined) return
          if (this.#joined === undefined) this.rejoin(rejoin.firstMillis)
          else this.#emitter.emit("reconnected", this)
        },
        (error: unknown) => this.end({ reason: codeOf(error) ?? "failed" })
      )
  }

  /** Ends the call for this client. */
  end(closed: CallClosed): void {
    if (this.closed !== undefined) return
    this.closed = closed
    this.#lose()
    this.#stopTimer()
    this.#microphone?.release()
    this.#microphone = undefined
    this.#emitter.emit("closed", closed)
  }

  async #return(): Promise<void> {
    if (this.closed === undefined) await this.enter()
  }

  #connect(joined: Joined): void {
    this.#media?.close()
    this.#sounds.clear()
    const context = {
      channel: this.#channel,
      connection: this.#connection,
      timers: this.#timers,
      sounds: this.#sounds,
      servers: () => this.#servers(),
      track: () => this.#microphone?.track ?? null,
      failed: () => this.#fail()
    }
    this.#media =
      joined.mode === "sfu" ? new ServerMedia(context, joined.session) : new PeerMedia(context)
    this.#media.setMembers(this.members)
    this.#listen()
  }

  #keep(event: VoiceEvent): void {
    this.#early = [...this.#early, event].slice(-64)
  }

  /** Requests a new session after the loss of the connection to the media server. */
  #fail(): void {
    this.#lose()
    this.#connection
      .request("voiceLeave", { channel: this.#channel })
      .catch(() => undefined)
      .finally(() => this.rejoin(0))
  }

  #lose(): void {
    this.#media?.close()
    this.#media = undefined
    this.#joined = undefined
    this.#sounds.clear()
    this.#slots = {}
  }

  async #servers(): Promise<RTCConfiguration> {
    const isOld = this.#timers.elapsed() - this.#joinedAt > serversMillis
    if (isOld && this.#joined !== undefined && this.#rejoining === undefined) await this.enter()
    const { iceServers = [], iceTransportPolicy = "relay" } = this.#joined ?? {}
    return {
      iceServers: iceServers.map((server) => ({ ...server, urls: [...server.urls] })),
      iceTransportPolicy
    }
  }

  async #publish(): Promise<void> {
    const session = this.#joined?.session
    if (session === undefined) return
    const on = !this.muted
    try {
      await this.#connection.request("voicePublish", { channel: this.#channel, session, on })
    } catch (error) {
      // Another session publishes for itself.
      if (this.#joined?.session === session) throw error
    }
  }

  #useMicrophone(microphone: Microphone | undefined): void {
    this.#microphone = microphone
    microphone?.track.addEventListener("ended", () => {
      if (this.#microphone === microphone) this.mute().catch(() => undefined)
    })
  }

  /** A player who may not speak, or has closed the microphone, is not played. */
  #volumeOf(id: string, volume = this.#volumes.get(id) ?? 1): number {
    const member = this.members.find((each) => each.id === id)
    return member?.canSpeak === true && member.publishing ? volume : 0
  }

  #applyVolumes(): void {
    if (this.mode === "p2p") {
      for (const { id } of this.members) this.#sounds.setVolume(id, this.#volumeOf(id))
    } else {
      for (const [slot, id] of Object.entries(this.#slots)) {
        this.#sounds.setVolume(slot, id === null ? 1 : (this.#volumes.get(id) ?? 1))
      }
    }
  }

  /** Measures who speaks, from time to time. */
  #listen(): void {
    this.#stopTimer()
    this.#stopTimer = this.#timers.after(speakingMillis, () => {
      this.#applyVolumes()
      this.#findSpeakers()
      this.#listen()
    })
  }

  /** The key of each other's sound. In a call through the media server, only speakers have one. */
  #sources(): ReadonlyArray<readonly [id: string, key: string]> {
    const others = this.members.filter(({ id }) => id !== this.#connection.playerId)
    if (this.mode === "p2p") {
      return others.filter(({ id }) => this.#volumeOf(id, 1) > 0).map(({ id }) => [id, id])
    }
    return others.flatMap(({ id }) =>
      Object.entries(this.#slots)
        .filter(([, speaker]) => speaker === id)
        .map(([slot]) => [id, slot] as const)
    )
  }

  #findSpeakers(): void {
    const sources = this.#sources()
    const levels = new Map(sources.map(([id, key]) => [id, this.#sounds.levelOf(key)]))
    const own = this.muted ? 0 : (this.#microphone?.level ?? 0)
    levels.set(this.#connection.playerId ?? "", own)
    const before = [...this.speaking, ...this.levels].join()
    this.speaking = sources
      .map(([id]) => id)
      .filter((id) => this.mode === "sfu" || (levels.get(id) ?? 0) > speechLevel)
    this.levels = new Map(Array.from(levels).filter(([, level]) => level > 0))
    this.#hint(own > speechLevel)
    if (before !== [...this.speaking, ...this.levels].join()) this.#emitter.emit("change", this)
  }

  /** Reports to the media server that the player begins or ends to speak. */
  #hint(speaking: boolean): void {
    const session = this.#joined?.session
    if (this.mode === "p2p" || session === undefined || speaking === this.#isSpeaking) return
    this.#isSpeaking = speaking
    this.#connection.notify("voiceSpeaking", { channel: this.#channel, session, speaking })
  }
}
