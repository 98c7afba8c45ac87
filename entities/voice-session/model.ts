/** Model of a voice call: its members, the commands it takes, and the events it emits. */
import { Result } from "effect"
import type { ChannelVoice } from "#rpc/channels/frames"
import type { NotInChannel, VoiceUnavailable } from "#rpc/errors/codes"
import type { SignalKind } from "#rpc/rooms/events"
import { secondsPerHour } from "#rpc/units"
import type { VoiceCloseReason, VoiceEvent } from "#rpc/voice"

export const voiceCalls = {
  /** Duration of a call; then its members join again. */
  callSeconds: 4 * secondsPerHour,
  /** Time for which a member whose connection closed stays in the call. */
  graceSeconds: 10,
  /** Minimum interval between two lists of members. */
  stateMillis: 250,
  /**
   * Delay after which a member of a lost call may join again. It is random, so that not all come at
   * once.
   */
  retryMinMillis: 200,
  retryMaxMillis: 1500
} as const

export interface CallMember {
  readonly id: string
  readonly connectionId: string
  /** Id of this attachment of the player to the call, unique over all activations. */
  readonly session: string
  /** Whether peers may not learn the player's address. */
  readonly relayOnly: boolean
  /** Whether the player may speak: the right to send in the channel decides. */
  readonly canSpeak: boolean
  /** Whether the microphone is open. */
  readonly publishing: boolean
  /** End of the grace after the connection closed, Unix milliseconds; null while it is open. */
  readonly absentUntil: number | null
}

export interface CallState {
  readonly channel: string
  readonly voice: ChannelVoice
  /** Members in the order of joining. */
  readonly members: ReadonlyMap<string, CallMember>
  /** End of the time limit, Unix milliseconds. */
  readonly endsAt: number
  /** Time at which the list of members was last sent, Unix milliseconds. */
  readonly listedAt: number
  /** Whether the list has changed since. */
  readonly changed: boolean
}

/** A member of the channel, as the call sees it. */
export interface ChannelMember {
  /** Id of the member's connection; undefined while it has none. */
  readonly connectionId: string | undefined
  readonly canSpeak: boolean
}

export interface Signal {
  readonly to: string
  readonly kind: SignalKind
  readonly data?: unknown
  readonly gen?: number
}

/** A command of a gateway, a timer, or the media server. */
export type CallCommand =
  | {
      readonly t: "join"
      readonly playerId: string
      readonly connectionId: string
      readonly relayOnly: boolean
      readonly canSpeak: boolean
      /** The id of a new session. */
      readonly newSession: string
      /** The session to return to, where it still lives. */
      readonly session?: string | undefined
    }
  | { readonly t: "leave"; readonly playerId: string; readonly connectionId: string }
  | ({
      readonly t: "signal"
      readonly playerId: string
      readonly connectionId: string
    } & Signal)
  | {
      readonly t: "publish"
      readonly playerId: string
      readonly session: string
      readonly on: boolean
    }
  /** Handles the failure of a session's media. */
  | { readonly t: "failed"; readonly session: string; readonly retryAfterMs: number }
  /**
   * Applies a change of the channel; `memberOf` returns undefined for players who are no members.
   */
  | { readonly t: "follow"; readonly memberOf: (id: string) => ChannelMember | undefined }
  /** `retryAfterMs` returns when a member may join again. */
  | {
      readonly t: "end"
      readonly reason: VoiceCloseReason
      readonly retryAfterMs?: () => number
    }
  /** Lists the members again, since some may have missed it. */
  | { readonly t: "list" }
  | { readonly t: "tick" }

/** An effect of a command on the outside, in order. */
export type CallEmission =
  | { readonly kind: "event"; readonly to: ReadonlyArray<string>; readonly event: VoiceEvent }
  | { readonly kind: "opened"; readonly session: string }
  | { readonly kind: "closed"; readonly session: string }
  /** Whether the others hear the session. */
  | { readonly kind: "microphone"; readonly session: string; readonly open: boolean }

export interface CallDecision {
  readonly state: CallState
  readonly emissions: ReadonlyArray<CallEmission>
}

export type CallError = NotInChannel | VoiceUnavailable

export const decided = (
  state: CallState,
  emissions: ReadonlyArray<CallEmission> = []
): Result.Result<CallDecision, never> => Result.succeed({ state, emissions })

/** A call without members. */
export const openCall = (
  options: Pick<CallState, "channel" | "voice">,
  now: number
): CallState => ({
  ...options,
  members: new Map(),
  endsAt: now + voiceCalls.callSeconds * 1000,
  listedAt: Number.NEGATIVE_INFINITY,
  changed: false
})

/** Delay after which a member of a lost call may join again. The fraction is random, in [0, 1). */
export const retryAfter = (fraction: number): number =>
  voiceCalls.retryMinMillis +
  Math.floor(fraction * (voiceCalls.retryMaxMillis - voiceCalls.retryMinMillis + 1))

/** The id of a session, unique over all activations of the channel. */
export const sessionId = (epoch: number, count: number): string => `${epoch}-${count}`

/** The epoch of the activation that made a session. */
export const epochOf = (session: string): number => Number(session.split("-")[0])

export const memberWith = ({ members }: CallState, session: string): CallMember | undefined => {
  for (const member of members.values()) if (member.session === session) return member
  return undefined
}
