/**
 * The invariants of voice calls. At every step: who is in a call is in its channel, and nobody hears a
 * player who may not send there. After everything has been healthy for a while: players and calls agree.
 */
import { Context, HashMap } from "effect"
import { selfOf } from "#entities/channel/model"
import { sameVoice } from "#entities/channel/options"
import type { VoiceCall } from "#entities/voice-session/call"
import { VoiceCalls } from "#entities/voice-session/calls"
import type { ChannelRecord } from "./channel-record.ts"
import { channelKey } from "./channel-rules.ts"
import type { Player } from "./player.ts"
import type { Runner } from "./runner.ts"
import type { Simulator } from "./simulator.ts"
import { SimulatedMedia } from "./voice-media.ts"

/** The calls of all channels that may still act. */
const callsOf = (record: ChannelRecord, runners: ReadonlyArray<Runner>): ReadonlyArray<VoiceCall> =>
  record.speaking().flatMap(({ actor, process }) => {
    const services = runners.find((runner) => runner.process === process)?.services
    return services === undefined ? [] : (Context.get(services, VoiceCalls).of(actor) ?? [])
  })

const checkCall = (simulator: Simulator, { channel, media, state }: VoiceCall): void => {
  const { id } = channel
  const members = Array.from(state.members.values())
  if (channel.state?.inCall !== members.length) simulator.fault(`${id} counts another call`)
  for (const member of members) {
    const { canSpeak, id: playerId } = member
    if (channel.state === undefined || !HashMap.has(channel.state.members, playerId)) {
      simulator.fault(`${playerId} is in the call of ${id}, and not in the channel`)
    } else if (canSpeak && !selfOf(channel.state, playerId, simulator.now).canSend) {
      simulator.fault(`${playerId} may speak in ${id}, and may not send`)
    }
  }
  const voice = channel.state?.options.voice ?? null
  if (members.length > 0 && (voice === null || !sameVoice(voice, state.voice))) {
    simulator.fault(`${id} has another kind of voice than its call`)
  }
  if (!(media instanceof SimulatedMedia)) return
  for (const [session, isAudible] of media.sessions) {
    const member = members.find((each) => each.session === session)
    if (member === undefined) simulator.fault(`${id} has media of ${session}, who is not in`)
    else if (isAudible && !(member.canSpeak && member.publishing)) {
      simulator.fault(`${member.id} is heard in ${id}, and may not speak`)
    }
  }
}

export const checkCalls = (
  simulator: Simulator,
  record: ChannelRecord,
  runners: ReadonlyArray<Runner>
): void => {
  for (const call of callsOf(record, runners)) checkCall(simulator, call)
}

/** Each player is in the calls that it believes to be in, and in no other. */
export const checkCallers = (
  simulator: Simulator,
  record: ChannelRecord,
  runners: ReadonlyArray<Runner>,
  players: ReadonlyArray<Player>
): void => {
  const calls = new Map(callsOf(record, runners).map((call) => [call.channel.id, call]))
  for (const { id, voice } of players) {
    for (const [name, session] of voice.sessions) {
      const is = calls.get(channelKey(name))?.state.members.get(id)?.session
      if (is !== session) simulator.fault(`${id} believes in ${session} of ${name}, it is ${is}`)
    }
    for (const { channel, state } of calls.values()) {
      const member = state.members.get(id)
      const name = channel.state?.options.name ?? ""
      if (member !== undefined && voice.sessions.get(name) !== member.session) {
        simulator.fault(`${name} has ${id} in its call, who does not know`)
      }
    }
  }
}
