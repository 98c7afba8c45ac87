/** Implementation of {@link ChannelVoice}. The code of calls loads with the first one. */
import type { Connection } from "./connection.ts"
import { ClientError, codeOf } from "./errors.ts"
import type { LiveVoiceCall } from "./live-voice-call.ts"
import type { Timers } from "./timers.ts"
import type { CallClosed, CallOptions, ChannelVoice, VoiceCall } from "./voice-call.ts"
import type { VoiceEvent } from "./wire.ts"

export class LiveChannelVoice implements ChannelVoice {
  call: LiveVoiceCall | undefined
  readonly #channel: { readonly name: string; readonly closed: unknown }
  readonly #connection: Connection
  readonly #timers: Timers

  constructor(
    channel: { readonly name: string; readonly closed: unknown },
    connection: Connection,
    timers: Timers
  ) {
    this.#channel = channel
    this.#connection = connection
    this.#timers = timers
  }

  async join({ microphone }: CallOptions = {}): Promise<VoiceCall> {
    const calls = await import("./live-voice-call.ts")
    const opened = await calls.openMicrophone(microphone)
    this.end({ reason: "left" })
    const { name } = this.#channel
    const call = new calls.LiveVoiceCall(name, this.#connection, this.#timers, opened)
    call.on("closed", () => {
      if (this.call === call) this.call = undefined
    })
    this.call = call
    try {
      if (this.#channel.closed !== undefined) {
        throw new ClientError("not_in_channel", "This channel is closed: join it again.")
      }
      await call.enter()
    } catch (error) {
      call.end({ reason: codeOf(error) ?? "failed" })
      throw error
    }
    return call
  }

  receive(event: VoiceEvent): void {
    this.call?.receive(event)
  }

  /** Returns to the session after the socket is back. */
  reconnected(): void {
    this.call?.rejoin(0)
  }

  end(closed: CallClosed): void {
    this.call?.end(closed)
  }
}
