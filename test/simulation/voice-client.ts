/**
 * The voice calls of a virtual player, as the typed client keeps them: in the call from the reply on, out
 * of it when the call closes or the channel is left. A lost call is joined again.
 */
import type { Reply } from "#rpc/realtime"
import type { VoiceEvent } from "#rpc/voice"

/** The player as its calls see it. */
interface Host {
  readonly id: string
  readonly connectionId: string | undefined
  readonly simulator: { readonly after: (millis: number, run: () => void) => void }
  readonly ask: (t: string, payload: Readonly<Record<string, unknown>>) => void
  readonly isIn: (channel: string) => boolean
}

export class VoiceClient {
  /** The session in the call of each channel. */
  readonly sessions = new Map<string, string>()
  readonly #asked = new Map<string, { readonly t: string; readonly channel: string }>()
  /** The session of the newest reply, by channel. */
  readonly #newest = new Map<string, string>()
  readonly #host: Host

  constructor(host: Host) {
    this.#host = host
  }

  asks(rid: string, t: string, channel: unknown): void {
    if (t === "voiceJoin" || t === "voiceLeave")
      this.#asked.set(rid, { t, channel: String(channel) })
  }

  answered({ data, ok, rid }: Reply): void {
    const asked = this.#asked.get(rid)
    this.#asked.delete(rid)
    if (asked === undefined) return
    const { channel, t } = asked
    if (t === "voiceJoin" && ok && this.#host.isIn(channel)) {
      const session = String(Object(data).session)
      this.sessions.set(channel, session)
      this.#newest.set(channel, session)
    }
    // A failed join or leave keeps a call of before in doubt: a client leaves it.
    if (!ok && this.sessions.has(channel)) this.#host.ask("voiceLeave", { channel })
    if (t === "voiceLeave" && ok) this.left(channel)
  }

  hear(event: VoiceEvent): void {
    const { channel } = event
    if (event.t === "voice_state") {
      const own = event.members.find(({ id }) => id === this.#host.id)
      if (own !== undefined && own.session === this.#newest.get(channel)) {
        this.sessions.set(channel, own.session)
      }
    }
    if (event.t !== "voice_closed") return
    this.sessions.delete(channel)
    const { connectionId } = this.#host
    this.#host.simulator.after(event.retryAfterMs ?? 0, () => {
      if (event.reason !== "unavailable" || this.sessions.has(channel)) return
      if (this.#host.connectionId === connectionId && this.#host.isIn(channel)) {
        this.#host.ask("voiceJoin", { channel })
      }
    })
  }

  /** The player has left the call, or its channel. */
  left(channel: string): void {
    this.sessions.delete(channel)
    this.#newest.delete(channel)
  }

  /** The socket has ended: the player does not return to its calls. */
  dropped(): void {
    this.sessions.clear()
    this.#newest.clear()
    this.#asked.clear()
  }
}
