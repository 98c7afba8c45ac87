/** Voice calls, as the service composes them. */
import { voiceFrames } from "./frames.ts"
import { MediaWorkersLive } from "./media-workers.ts"
import { VoiceSessions } from "./service.ts"

export const voice = {
  entityServices: MediaWorkersLive,
  frameServices: VoiceSessions.layer,
  frames: voiceFrames
}
