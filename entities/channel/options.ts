/**
 * Options of a channel: defaults, changes through the server API, and the permitted voice modes. Pure.
 */
import { Result } from "effect"
import { VoiceInUse, VoiceTooLarge } from "#rpc/errors/codes"
import type { ChannelChanges, ChannelVoice } from "#rpc/channels/frames"
import { channelLimits } from "#rpc/channels/limits"
import type { ChannelState, Lists, ChannelOptions } from "./model.ts"

type RequestedVoice = Exclude<ChannelChanges["voice"], undefined>

/** Resolves a requested voice setting for this number of members. */
export const voiceOf = (
  requested: RequestedVoice,
  maxMembers: number
): Result.Result<ChannelVoice | null, VoiceTooLarge> => {
  if (requested === null) return Result.succeed(null)
  const { mode, relayOnly = true } = requested === true ? {} : requested
  const defaultMode = maxMembers <= channelLimits.voicePeersMax ? "p2p" : "sfu"
  return checkVoiceLimit({ mode: mode ?? defaultMode, relayOnly }, maxMembers)
}

const checkVoiceLimit = (
  voice: ChannelVoice,
  maxMembers: number
): Result.Result<ChannelVoice, VoiceTooLarge> => {
  const limit = voice.mode === "p2p" ? channelLimits.voicePeersMax : channelLimits.voiceMembersMax
  return maxMembers > limit
    ? Result.fail(new VoiceTooLarge({ details: { limit } }))
    : Result.succeed(voice)
}

/** The default options of a managed channel. */
export const defaultOptions = (
  environmentId: string,
  name: string,
  createdAt: number
): ChannelOptions => ({
  environmentId,
  name,
  managed: true,
  ownerId: null,
  join: "anyone",
  send: "anyone",
  open: false,
  maxMembers: channelLimits.membersDefault,
  voice: null,
  createdAt
})

export const sameVoice = (a: ChannelVoice | null, b: ChannelVoice | null): boolean =>
  a?.mode === b?.mode && a?.relayOnly === b?.relayOnly

const withLists = (before: Lists, { allow, speakers }: ChannelChanges): Lists => ({
  ...before,
  ...(allow === undefined ? {} : { allow: new Set(allow) }),
  ...(speakers === undefined ? {} : { speakers: new Set(speakers) })
})

/** Applies changes of the server API and makes the channel managed; removes no members. */
export const withChanges = (
  state: ChannelState,
  changes: ChannelChanges
): Result.Result<ChannelState, VoiceInUse | VoiceTooLarge> => {
  const { options } = state
  const maxMembers = changes.maxMembers ?? options.maxMembers
  const requested = changes.voice === undefined ? options.voice : changes.voice
  return Result.flatMap(voiceOf(requested, maxMembers), (voice) => {
    if (state.inCall > 0 && !sameVoice(voice, options.voice)) return Result.fail(new VoiceInUse())
    const { join = options.join, open = options.open, send = options.send } = changes
    return Result.succeed({
      ...state,
      options: { ...options, managed: true, ownerId: null, join, send, open, maxMembers, voice },
      lists: withLists(state.lists, changes),
      ownerAway: null,
      emptySince: null
    })
  })
}
