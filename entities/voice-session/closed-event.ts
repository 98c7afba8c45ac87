/**
 * Event by which a call ends for a member. The call's runner writes it, and the link of the member's node
 * recognises it in the text of a frame. Runners of two releases share that text: its start must not change.
 */
import type { VoiceCloseReason, VoiceEvent } from "#rpc/voice"

type VoiceClosed = Extract<VoiceEvent, { readonly t: "voice_closed" }>

/** Builds the event. JSON keeps the order of the fields, so `t` is the first one. */
export const voiceClosed = (
  channel: string,
  reason: VoiceCloseReason,
  retryAfterMs?: number
): VoiceClosed => {
  const closed = { t: "voice_closed", channel, reason } as const
  return retryAfterMs === undefined ? closed : { ...closed, retryAfterMs }
}

const start = '{"t":"voice_closed"'

/** Whether the text of a frame is the event. */
export const endsVoice = (text: string): boolean => text.startsWith(start)
