/**
 * A voice call of a channel, with its media: the microphone, the connections and the sound. The object
 * survives reconnects, until the call is closed.
 */
import type { ListenerOptions, Unsubscribe } from "./emitter.ts"
import type { VoiceMember } from "./wire.ts"

/** Options with which the player joins a call. */
export interface CallOptions {
  /**
   * `true` asks for the microphone, constraints choose one (`{ deviceId }`), and a track is used as it
   * is. Default: none; the player only listens.
   */
  readonly microphone?: boolean | MediaTrackConstraints | MediaStreamTrack
}

/** Reason for the end of a call for this client. */
export interface CallClosed {
  /** `left`, the reason of `voice_closed` or of the channel's end, or the error of a failed rejoin. */
  readonly reason: string
}

/** Events of a call. */
export interface VoiceCallEvents {
  /** Members, speakers, levels or the own mute have changed. */
  readonly change: VoiceCall
  /** The call is lost, and the client joins it again. */
  readonly reconnecting: VoiceCall
  /** The client has joined again. */
  readonly reconnected: VoiceCall
  /** The call has ended for this client. */
  readonly closed: CallClosed
}

/** A call that the player is in. Its sound plays by itself. */
export interface VoiceCall {
  /** `p2p`: from player to player. `sfu`: through the media server. */
  readonly mode: "p2p" | "sfu"

  /** The members, with this player. */
  readonly members: ReadonlyArray<VoiceMember>

  /** Ids of the others who speak now. */
  readonly speaking: ReadonlyArray<string>

  /** Current level of each player, 0 to 1, this player included. Silent players are absent. */
  readonly levels: ReadonlyMap<string, number>

  /** Whether the microphone is closed, or the player has none. */
  readonly muted: boolean

  /** Reason for the end of the call; undefined while it lasts. */
  readonly closed: CallClosed | undefined

  /**
   * Adds a listener and returns a function that removes it, as does aborting the option `signal`.
   *
   * @example
   * call.on("change", ({ members, speaking }) => show(members, speaking))
   */
  on<Name extends keyof VoiceCallEvents>(
    name: Name,
    listener: (event: VoiceCallEvents[Name]) => void,
    options?: ListenerOptions
  ): Unsubscribe

  /**
   * Closes the microphone, or opens it again.
   *
   * @example
   * await call.mute() // and call.mute(false) opens it
   */
  mute(muted?: boolean): Promise<void>

  /**
   * The microphones of the device. They have names once the player has allowed one.
   *
   * @example
   * for (const { deviceId, label } of await call.devices()) addOption(label, deviceId)
   */
  devices(): Promise<ReadonlyArray<MediaDeviceInfo>>

  /**
   * Switches to another microphone, also when the player joined without one.
   *
   * @example
   * await call.setMicrophone({ deviceId: { exact: deviceId } })
   */
  setMicrophone(microphone: true | MediaTrackConstraints | MediaStreamTrack): Promise<void>

  /**
   * Sets how loud this client plays a player: 0 to 1. iOS knows only 0 and 1.
   *
   * @example
   * call.setVolume(member.id, 0.5)
   */
  setVolume(playerId: string, volume: number): void

  /**
   * Leaves the call and releases the microphone that the call has asked for.
   *
   * @example
   * await call.leave()
   */
  leave(): Promise<void>
}

/** Calls of one channel. */
export interface ChannelVoice {
  /** The call that the player is in. */
  readonly call: VoiceCall | undefined

  /**
   * Joins the channel's call. Rejects with `voice_disabled`, `voice_suspended` or `voice_unavailable`, or
   * with the browser's error if it refuses the microphone.
   *
   * @example
   * const call = await channel.voice.join({ microphone: true })
   */
  join(options?: CallOptions): Promise<VoiceCall>
}
