/**
 * Signalling of the voice calls of channels, for a game that makes the peer connections itself.
 * This module carries their messages to each other or to the media server. `channel.voice` makes
 * the connections.
 */
import type { Module } from "./compose.ts"
import { Emitter, type ListenerOptions, type Unsubscribe } from "./emitter.ts"
import type { FrameData, FramePayload, ServerEvent } from "./frames.ts"
import type { VoiceEvent } from "./wire.ts"

/** Events of calls, by name. Each names its `channel`. */
export type VoiceEvents = {
  readonly [T in VoiceEvent["t"]]: Extract<VoiceEvent, { readonly t: T }>
}

/** Voice calls of the channels that the player has joined. */
export interface Voice {
  /**
   * Joins the call of a channel, or returns to it with the `session` of an earlier join. Returns the mode,
   * the session and the STUN and TURN servers. Rejects with `voice_disabled`, `voice_suspended` or
   * `voice_unavailable`.
   *
   * @example
   * const { mode, session } = await client.voice.join({ channel: party.name })
   */
  join(call: FramePayload<"voiceJoin">): Promise<FrameData<"voiceJoin">>

  /**
   * Leaves the call.
   *
   * @example
   * await client.voice.leave({ channel: party.name })
   */
  leave(call: FramePayload<"voiceLeave">): Promise<void>

  /**
   * Mode `p2p`: sends a WebRTC signal to one member, who receives `voice_signal`.
   *
   * @example
   * await client.voice.signal({ channel, to: member.id, kind: "offer", data: peer.localDescription })
   */
  signal(step: FramePayload<"voiceSignal">): Promise<FrameData<"voiceSignal">>

  /**
   * Mode `sfu`: answers `voice_sfu_offer`, and returns the candidates of the media server.
   *
   * @example
   * const { candidates } = await client.voice.answer({ channel, session, gen, sdp })
   */
  answer(answer: FramePayload<"voiceAnswer">): Promise<FrameData<"voiceAnswer">>

  /**
   * Opens or closes the microphone.
   *
   * @example
   * const { canSpeak } = await client.voice.publish({ channel, session, on: true })
   */
  publish(microphone: FramePayload<"voicePublish">): Promise<FrameData<"voicePublish">>

  /**
   * Hints that the player begins or ends to speak, without a reply.
   *
   * @example
   * client.voice.speaking({ channel, session, speaking: true })
   */
  speaking(hint: FramePayload<"voiceSpeaking">): void

  /**
   * Adds a listener and returns a function that removes it, as does aborting the option `signal`.
   *
   * @example
   * client.voice.on("voice_state", ({ members }) => showSpeakers(members))
   */
  on<Name extends keyof VoiceEvents>(
    name: Name,
    listener: (event: VoiceEvents[Name]) => void,
    options?: ListenerOptions
  ): Unsubscribe
}

export const isVoiceEvent = (event: ServerEvent): event is VoiceEvent =>
  event.t.startsWith("voice_")

export const voice: Module<Voice> = ({ connection }) => {
  const emitter = new Emitter<VoiceEvents>()
  connection.listen({
    receive: (event) => {
      if (isVoiceEvent(event)) emitter.emit(event.t, event)
    }
  })
  return {
    join: (call) => connection.request("voiceJoin", call),
    leave: async (call) => {
      await connection.request("voiceLeave", call)
    },
    signal: (step) => connection.request("voiceSignal", step),
    answer: (answer) => connection.request("voiceAnswer", answer),
    publish: (microphone) => connection.request("voicePublish", microphone),
    speaking: (hint) => connection.notify("voiceSpeaking", hint),
    on: emitter.on
  }
}
