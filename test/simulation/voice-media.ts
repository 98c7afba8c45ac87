/** The media server of a simulated runner: knows whom the others hear, and loses some calls. */
import { Effect, Layer } from "effect"
import { type MediaCall, type MediaListener, VoiceMedia } from "#entities/voice-session/media"
import type { Process } from "./simulator.ts"

/** Each third call of a runner is lost after this time. */
const lostEvery = 3
const lostMillis = 1500

export class SimulatedMedia implements MediaCall {
  /** Sessions with media; true if the others hear it. */
  readonly sessions = new Map<string, boolean>()
  readonly #listener: MediaListener

  constructor(listener: MediaListener) {
    this.#listener = listener
  }

  lose(): void {
    if (this.sessions.size > 0) this.#listener.lost()
  }

  reserve(): boolean {
    return true
  }

  open(session: string): void {
    this.sessions.set(session, false)
  }

  answer = () => Effect.succeed([])

  setMicrophone(session: string, open: boolean): void {
    if (this.sessions.has(session)) this.sessions.set(session, open)
  }

  hint(): void {}

  close(session: string): void {
    this.sessions.delete(session)
  }

  end(): void {
    this.sessions.clear()
  }
}

export const simulatedMedia = (process: Process) => {
  let calls = 0
  return Layer.succeed(VoiceMedia, {
    start: (listener) =>
      Effect.sync(() => {
        const media = new SimulatedMedia(listener)
        calls += 1
        if (calls % lostEvery === 0) {
          process.simulator.after(lostMillis, () => {
            if (process.state !== "dead") media.lose()
          })
        }
        return media
      })
  })
}
