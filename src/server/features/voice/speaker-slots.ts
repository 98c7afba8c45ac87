/**
 * Audible speakers of a call: the loudest ones, one per slot. A speaker takes a free slot after 60 ms
 * of sound, or the quietest speaker's slot after 500 ms. A speaker loses its slot after two seconds of
 * silence. Times are in milliseconds, levels in -dBov: 0 is the loudest. Pure.
 */

/** Level of the loudest sound that takes no slot, in -dBov. */
const speechLevel = 50
const takeMillis = 60
const stealMillis = 500
const silenceMillis = 2000
/** Maximum length of a pause within the sound that counts towards a slot. */
const pauseMillis = 200
/** Number of dB by which a speaker must be louder to take another's slot. */
const stealMargin = 6
/** Weight of the newest packet in the smoothed level. */
const smoothing = 0.1

interface Speaker {
  slot: number | undefined
  level: number
  loudSince: number
  loudAt: number
}

export class SpeakerSlots {
  readonly #speakers = new Map<string, Speaker>()
  readonly #slots: Array<string | undefined>
  readonly #changed = new Set<number>()

  constructor(size: number) {
    this.#slots = Array.from({ length: size }, () => undefined)
  }

  /** Registers a packet; returns the slot on which the others hear it, or undefined. */
  packet(id: string, level: number, now: number): number | undefined {
    const speaker = this.#speakerOf(id, now)
    speaker.level += (level - speaker.level) * smoothing
    if (level < speechLevel) {
      if (now - speaker.loudAt > pauseMillis) speaker.loudSince = now
      speaker.loudAt = now
      if (speaker.slot === undefined) this.#take(id, speaker, now)
    }
    return speaker.slot
  }

  /**
   * Records a speaker's announcement of speech. The speaker's first sound within 200 ms then takes
   * a free slot.
   */
  hint(id: string, now: number): void {
    const speaker = this.#speakerOf(id, now)
    if (now - speaker.loudAt <= pauseMillis) return
    speaker.loudSince = now - takeMillis
    speaker.loudAt = now
  }

  remove(id: string): void {
    const slot = this.#speakers.get(id)?.slot
    this.#speakers.delete(id)
    if (slot !== undefined) this.#set(slot, undefined)
  }

  /** Frees the slots of silent speakers. */
  tick(now: number): void {
    for (const speaker of this.#speakers.values()) {
      if (speaker.slot === undefined || now - speaker.loudAt < silenceMillis) continue
      this.#set(speaker.slot, undefined)
      speaker.slot = undefined
    }
  }

  /** Takes the changed slots with their speakers. */
  takeChanges(): ReadonlyArray<readonly [slot: number, id: string | null]> {
    const changes = Array.from(this.#changed, (slot): readonly [number, string | null] => [
      slot,
      this.#slots[slot] ?? null
    ])
    this.#changed.clear()
    return changes
  }

  #speakerOf(id: string, now: number): Speaker {
    const known = this.#speakers.get(id)
    if (known !== undefined) return known
    const speaker = {
      slot: undefined,
      level: 127,
      loudSince: now,
      loudAt: Number.NEGATIVE_INFINITY
    }
    this.#speakers.set(id, speaker)
    return speaker
  }

  #take(id: string, speaker: Speaker, now: number): void {
    const loudFor = now - speaker.loudSince
    if (loudFor < takeMillis) return
    const free = this.#slots.indexOf(undefined)
    if (free >= 0) return this.#give(free, id, speaker)
    if (loudFor < stealMillis) return
    const [quietest] = Array.from(this.#speakers.values())
      .filter(({ slot }) => slot !== undefined)
      .toSorted((a, b) => b.level - a.level)
    if (quietest?.slot === undefined || speaker.level > quietest.level - stealMargin) return
    const { slot } = quietest
    quietest.slot = undefined
    this.#give(slot, id, speaker)
  }

  #give(slot: number, id: string, speaker: Speaker): void {
    speaker.slot = slot
    this.#set(slot, id)
  }

  #set(slot: number, id: string | undefined): void {
    this.#slots[slot] = id
    this.#changed.add(slot)
  }
}
