/** Plays the tracks of a call, each in an audio element of its own. */

interface Sound {
  readonly audio: HTMLAudioElement
  readonly receiver: RTCRtpReceiver
}

const play = (audio: HTMLAudioElement): void => {
  // A browser may wait for the player's first touch of the page.
  audio.play().catch(() => addEventListener("pointerdown", () => play(audio), { once: true }))
}

export class Sounds {
  readonly #sounds = new Map<string, Sound>()

  /** Plays a track under a key: a player or a slot. */
  play(key: string, receiver: RTCRtpReceiver): void {
    this.stop(key)
    const audio = new Audio()
    audio.srcObject = new MediaStream([receiver.track])
    this.#sounds.set(key, { audio, receiver })
    play(audio)
  }

  setVolume(key: string, volume: number): void {
    const audio = this.#sounds.get(key)?.audio
    if (audio === undefined) return
    audio.volume = volume
    audio.muted = volume === 0
  }

  /** Returns the current level of the track, 0 to 1, independent of its volume. */
  levelOf(key: string): number {
    const [source] = this.#sounds.get(key)?.receiver.getSynchronizationSources() ?? []
    return source?.audioLevel ?? 0
  }

  stop(key: string): void {
    const audio = this.#sounds.get(key)?.audio
    if (audio !== undefined) audio.srcObject = null
    this.#sounds.delete(key)
  }

  clear(): void {
    for (const key of Array.from(this.#sounds.keys())) this.stop(key)
  }
}
