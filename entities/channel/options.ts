/** How a channel is set up and changed by the server API, and what its voice may be. Pure. */
import { Result } from "effect"
import { VoiceInUse, VoiceTooLarge } from "#rpc/errors/codes"
import type { ChannelChanges, ChannelVoice } from "#rpc/channels"
import { channels as limits } from "#rpc/limits"
import type { ChannelState, Lists, ChannelOptions } from "./model.ts"

type VoiceWish = Exclude<ChannelChanges["voice"], undefined>

/** The voice that a wish comes to, for so many members. */
export const voiceOf = (
  wish: VoiceWish,
  maxMembers: number
): Result.Result<ChannelVoice | null, VoiceTooLarge> => {
  if (wish === null) return Result.succeed(null)
  const { mode, relayOnly = true } = wish === true ? {} : wish
  const fitting = maxMembers <= limits.voicePeersMax ? "p2p" : "sfu"
  return fits({ mode: mode ?? fitting, relayOnly }, maxMembers)
}

const fits = (
  voice: ChannelVoice,
  maxMembers: number
): Result.Result<ChannelVoice, VoiceTooLarge> => {
  const limit = voice.mode === "p2p" ? limits.voicePeersMax : limits.voiceMembersMax
  return maxMembers > limit
    ? Result.fail(new VoiceTooLarge({ details: { limit } }))
    : Result.succeed(voice)
}

/** How a channel is set up that says nothing else. */
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
  maxMembers: limits.membersDefault,
  voice: null,
  createdAt
})

const sameVoice = (a: ChannelVoice | null, b: ChannelVoice | null): boolean =>
  a?.mode === b?.mode && a?.relayOnly === b?.relayOnly

const listed = (before: Lists, { allow, speakers }: ChannelChanges): Lists => ({
  ...before,
  ...(allow === undefined ? {} : { allow: new Set(allow) }),
  ...(speakers === undefined ? {} : { speakers: new Set(speakers) })
})

/** The channel in the server's hand, with these changes; nobody is put out for them. */
export const withChanges = (
  state: ChannelState,
  changes: ChannelChanges
): Result.Result<ChannelState, VoiceInUse | VoiceTooLarge> => {
  const { options } = state
  const maxMembers = changes.maxMembers ?? options.maxMembers
  const wish = changes.voice === undefined ? options.voice : changes.voice
  return Result.flatMap(voiceOf(wish, maxMembers), (voice) => {
    if (state.inCall > 0 && !sameVoice(voice, options.voice)) return Result.fail(new VoiceInUse())
    const { join = options.join, open = options.open, send = options.send } = changes
    return Result.succeed({
      ...state,
      options: { ...options, managed: true, ownerId: null, join, send, open, maxMembers, voice },
      lists: listed(state.lists, changes),
      ownerUntil: null,
      emptyUntil: null
    })
  })
}
