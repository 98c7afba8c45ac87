/** Call in the media server: its members' connections, and the forwarding of the loudest speakers. */
import { type Candidate, fitsOffer, type MediaDriver, type MediaPeer } from "./media-driver.ts"
import { mediaLimits } from "./media-limits.ts"
import { readPacket, SlotRewriter } from "./rtp.ts"
import { SpeakerSlots } from "./speaker-slots.ts"

export interface RoomEvents {
  /** Takes packets of the environment's share: all or none. */
  readonly take: (packets: number) => boolean
  readonly sent: (packets: number) => void
  readonly offered: (session: string, gen: number, sdp: string) => void
  readonly connected: (session: string) => void
  readonly failed: (session: string) => void
  /** Reports the sessions of changed slots. */
  readonly speaking: (
    changes: ReadonlyArray<readonly [slot: number, session: string | null]>
  ) => void
}

interface Member {
  readonly session: string
  peer: MediaPeer
  gen: number
  /** Whether the member has answered the newest offer. */
  answered: boolean
  /** Time at which a member that is not connected counts as failed. */
  failsAt: number
  isAudible: boolean
  /** Tokens for packets, and the time of their last refill. */
  tokens: number
  countedAt: number
  /** Packets of all kinds since the last tick. */
  received: number
}

/** SSRC of the first slot; the others follow. */
const firstSsrc = 0x53_56_43_01

export class MediaRoom {
  readonly #driver: MediaDriver
  readonly #events: RoomEvents
  readonly #now: () => number
  readonly #members = new Map<string, Member>()
  readonly #slots = new SpeakerSlots(mediaLimits.slots)
  readonly #rewriters = Array.from(
    { length: mediaLimits.slots },
    (_, slot) => new SlotRewriter(firstSsrc + slot)
  )
  constructor(driver: MediaDriver, events: RoomEvents, now: () => number) {
    this.#driver = driver
    this.#events = events
    this.#now = now
  }

  get size(): number {
    return this.#members.size
  }

  /** Adds a member and sends it an offer. */
  open(session: string): void {
    if (this.#members.has(session)) return
    const now = this.#now()
    const member: Member = {
      session,
      peer: this.#peerOf(session),
      gen: 1,
      answered: false,
      failsAt: now + mediaLimits.connectSeconds * 1000,
      isAudible: false,
      tokens: mediaLimits.packetsPerSecond,
      countedAt: now,
      received: 0
    }
    this.#members.set(session, member)
    this.#offer(member)
  }

  /**
   * Applies an answer; undefined for an answer to an older offer. An unusable answer throws, and the
   * member gets another offer.
   */
  answer(session: string, gen: number, sdp: string): ReadonlyArray<Candidate> | undefined {
    const member = this.#members.get(session)
    if (member === undefined || member.gen !== gen || member.answered) return undefined
    try {
      if (!fitsOffer(sdp, mediaLimits.slots)) {
        throw new Error(`Expected ${mediaLimits.slots + 1} lines of audio`)
      }
      const candidates = member.peer.answer(sdp)
      member.answered = true
      return candidates
    } catch (error) {
      this.#offerAgain(member)
      throw error
    }
  }

  setMicrophone(session: string, open: boolean): void {
    const member = this.#members.get(session)
    if (member === undefined) return
    member.isAudible = open
    if (!open) this.#slots.remove(session)
    this.#reportSpeaking()
  }

  hint(session: string): void {
    if (this.#members.get(session)?.isAudible === true) this.#slots.hint(session, this.#now())
  }

  close(session: string): void {
    const member = this.#members.get(session)
    if (member === undefined) return
    this.#members.delete(session)
    this.#slots.remove(session)
    member.peer.close()
    this.#reportSpeaking()
  }

  end(): void {
    for (const { peer } of this.#members.values()) peer.close()
    this.#members.clear()
  }

  /**
   * Frees silent slots, and ends members that do not connect or flood the process. The flood limit is
   * lower while their environment sends more than its share.
   */
  tick(isBeyondShare = false): void {
    const now = this.#now()
    const packetsMax = isBeyondShare
      ? mediaLimits.packetsPerTickBeyondShare
      : mediaLimits.packetsPerTick
    this.#slots.tick(now)
    this.#reportSpeaking()
    for (const member of Array.from(this.#members.values())) {
      const floods = member.received > packetsMax
      member.received = 0
      if (floods || now >= member.failsAt) this.#fail(member.session)
    }
  }

  #peerOf(session: string): MediaPeer {
    const ssrcs = this.#rewriters.map(({ ssrc }) => ssrc)
    const peer: MediaPeer = this.#driver.open(session, ssrcs, {
      onPacket: (packet) => this.#receive(session, packet),
      onState: (state) => {
        const member = this.#members.get(session)
        if (member === undefined || member.peer !== peer) return
        if (state === "closed") return this.#fail(session)
        if (state === "connected") this.#events.connected(session)
        member.failsAt =
          state === "connected"
            ? Number.POSITIVE_INFINITY
            : this.#now() + mediaLimits.disconnectedSeconds * 1000
      }
    })
    return peer
  }

  #offer(member: Member): void {
    const { gen, peer, session } = member
    peer.offer().then(
      (sdp) => {
        if (member.gen === gen) this.#events.offered(session, gen, sdp)
      },
      () => this.#fail(session)
    )
  }

  #offerAgain(member: Member): void {
    if (member.gen >= mediaLimits.offersMax) return this.#fail(member.session)
    member.peer.close()
    member.gen += 1
    member.peer = this.#peerOf(member.session)
    this.#offer(member)
  }

  #fail(session: string): void {
    if (!this.#members.has(session)) return
    this.close(session)
    this.#events.failed(session)
  }

  /** Forwards a packet to all other members if its speaker has a slot. */
  #receive(session: string, packet: Buffer): void {
    const member = this.#members.get(session)
    if (member === undefined) return
    member.received += 1
    if (!this.#events.take(1) || !member.isAudible) return
    const read = readPacket(packet)
    if (read === undefined) return
    const now = this.#now()
    if (!this.#takeToken(member, now)) return
    const slot = this.#slots.packet(session, read.level, now)
    this.#reportSpeaking()
    const rewriter = slot === undefined ? undefined : this.#rewriters[slot]
    if (slot === undefined || rewriter === undefined) return
    const listeners = Array.from(this.#members.values()).filter(
      (other) => other !== member && other.answered
    )
    if (!this.#events.take(listeners.length)) return
    const out = rewriter.rewrite(session, packet, read, now)
    for (const { peer } of listeners) peer.send(slot, out)
    this.#events.sent(listeners.length)
  }

  #takeToken(member: Member, now: number): boolean {
    const { packetsPerSecond } = mediaLimits
    const refill = ((now - member.countedAt) / 1000) * packetsPerSecond
    member.tokens = Math.min(packetsPerSecond, member.tokens + refill)
    member.countedAt = now
    if (member.tokens < 1) return false
    member.tokens -= 1
    return true
  }

  #reportSpeaking(): void {
    const changes = this.#slots.takeChanges()
    if (changes.length > 0) this.#events.speaking(changes)
  }
}
