/** Error codes of voice calls. */
import { coded } from "./wire.ts"

/** The channel was created without voice. Create it with `voice`. */
export class VoiceDisabled extends coded<VoiceDisabled>()(
  "voice_disabled",
  409,
  "This channel has no voice."
) {}

/** The operator has suspended voice in this environment. Hide calls, and retry much later. */
export class VoiceSuspended extends coded<VoiceSuspended>()(
  "voice_suspended",
  403,
  "The operator has suspended voice."
) {}

/**
 * The call is full or moves, or the deployment lacks what the call needs. A relayed peer-to-peer
 * call needs a relay (TURN) server, other calls the media server. Retry after some seconds.
 */
export class VoiceUnavailable extends coded<VoiceUnavailable>()(
  "voice_unavailable",
  503,
  "The voice call cannot be joined now."
) {}

/** The voice settings cannot change during a call. Retry after it has ended. */
export class VoiceInUse extends coded<VoiceInUse>()(
  "voice_in_use",
  409,
  "Someone is in this channel's voice call."
) {}
