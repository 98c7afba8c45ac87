/** The microphone of a call: its track, and how loud it is. */
import { ClientError } from "./errors.ts"
import type { CallOptions } from "./voice-call.ts"

/** Opens the microphone of the options, if there is one. */
export const openMicrophone = async (wanted: CallOptions["microphone"]) => {
  if (wanted === undefined || wanted === false) return undefined
  if (wanted instanceof MediaStreamTrack) return new Microphone(wanted, false)
  const { mediaDevices }: { readonly mediaDevices?: MediaDevices } = navigator
  if (mediaDevices === undefined) {
    const message = "Browsers give a microphone only to pages from https: or localhost."
    throw new ClientError("microphone_unavailable", message)
  }
  const stream = await mediaDevices.getUserMedia({ audio: wanted })
  const [track] = stream.getAudioTracks()
  return track === undefined ? undefined : new Microphone(track, true)
}

export class Microphone {
  readonly track: MediaStreamTrack
  /** Whether the call has requested the track, and stops it. */
  readonly #isOwn: boolean
  readonly #context = new AudioContext()
  readonly #analyser = this.#context.createAnalyser()

  constructor(track: MediaStreamTrack, isOwn: boolean) {
    this.track = track
    this.#isOwn = isOwn
    this.#context.createMediaStreamSource(new MediaStream([track])).connect(this.#analyser)
  }

  /** Current level, 0 to 1. */
  get level(): number {
    const samples = new Float32Array(this.#analyser.fftSize)
    this.#analyser.getFloatTimeDomainData(samples)
    const power = samples.reduce((sum, sample) => sum + sample * sample, 0)
    return Math.sqrt(power / samples.length)
  }

  release(): void {
    void this.#context.close()
    if (this.#isOwn) this.track.stop()
  }
}
