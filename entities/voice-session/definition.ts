/** The voice session, as the registry of entities lists it: its actors are the calls of the node. */
import { entity } from "../definition.ts"
import type { VoiceCall } from "./call.ts"
import { VoiceCalls } from "./calls.ts"
import { VoiceSessionLive } from "./entity.ts"

const report = ({ state: { channel, endsAt, members, voice } }: VoiceCall) => ({
  channel,
  ...voice,
  endsAt,
  members: Array.from(members.values(), ({ absentUntil, canSpeak, id, publishing }) => ({
    playerId: id,
    speaks: canSpeak && publishing,
    away: absentUntil !== null
  }))
})

export const voiceSession = entity({
  word: "call",
  local: VoiceCalls.layer,
  behaviour: VoiceSessionLive,
  registry: VoiceCalls,
  counts: [{ field: "calls", of: () => 1 }],
  environmentOf: ({ channel, state }) =>
    state.members.size === 0 ? undefined : channel.environmentId,
  live: (call) => ({ calls: report(call) })
})
