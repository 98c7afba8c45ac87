/** The media server of a node, as calls use it. A deployment without one offers peer-to-peer calls only. */
import { Context, Effect } from "effect"
import { type InvalidFrame, VoiceUnavailable } from "#rpc/errors/codes"

/** An offer of the media server for one session. */
export interface MediaOffer {
  readonly session: string
  readonly gen: number
  readonly sdp: string
  readonly publishMid: string
  readonly slots: ReadonlyArray<string>
}

/** An ICE candidate of the media server. */
export interface MediaCandidate {
  readonly candidate: string
  readonly sdpMid: string
}

/** Callbacks for the reports of the media server about one call. */
export interface MediaListener {
  readonly offered: (offer: MediaOffer) => void
  /** Sessions by slot, for the slots that have changed; null for a free one. */
  readonly speaking: (slots: Readonly<Record<string, string | null>>) => void
  /** Reports that the media of a session has failed. */
  readonly failed: (session: string) => void
  /** Reports that all media of the call is lost. */
  readonly lost: () => void
}

/** The media of one call. */
export interface MediaCall {
  /**
   * Reserves a place among the joins under way for a new session. Returns false where there is
   * none.
   */
  readonly reserve: (session: string) => boolean
  /** Requests an offer for a session. */
  readonly open: (session: string) => void
  readonly answer: (
    session: string,
    gen: number,
    sdp: string
  ) => Effect.Effect<ReadonlyArray<MediaCandidate>, InvalidFrame | VoiceUnavailable>
  /** Whether the others hear the session. */
  readonly setMicrophone: (session: string, open: boolean) => void
  readonly hint: (session: string, speaking: boolean) => void
  readonly close: (session: string) => void
  readonly end: () => void
}

export const VoiceMedia = Context.Reference<{
  /** Starts the media of a call. */
  readonly start: (
    listener: MediaListener,
    environmentId: string
  ) => Effect.Effect<MediaCall, VoiceUnavailable>
}>("entities/voice-session/media/VoiceMedia", {
  defaultValue: () => ({ start: () => Effect.fail(new VoiceUnavailable()) })
})
