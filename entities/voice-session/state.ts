/**
 * Voice call state machine, pure: `(state, command, now) => Result<Decision, error>`.
 *
 * Invariants: a member of the call is a member of its channel; a player has one session at most; who may
 * not send in the channel is not heard; an emission for a session stands between its `opened` and its
 * `closed`.
 */
import { Result } from "effect"
import { channelLimits } from "#rpc/channels/limits"
import { NotInChannel, VoiceUnavailable } from "#rpc/errors/codes"
import type { VoiceEvent } from "#rpc/voice"
import { relayed } from "../relayed-signal.ts"
import { voiceClosed } from "./closed-event.ts"
import {
  type CallCommand,
  type CallDecision,
  type CallEmission,
  type CallError,
  type CallMember,
  type CallState,
  type ChannelMember,
  decided,
  memberWith,
  voiceCalls
} from "./model.ts"

const graceMillis = voiceCalls.graceSeconds * 1000

type Command<T extends CallCommand["t"]> = Extract<CallCommand, { t: T }>

const withMember = (state: CallState, member: CallMember): CallState => ({
  ...state,
  members: new Map(state.members).set(member.id, member)
})

const changed = (state: CallState, member: CallMember): CallState => ({
  ...withMember(state, member),
  changed: true
})

const allOf = ({ members }: CallState): ReadonlyArray<CallMember> => Array.from(members.values())

const isAudible = ({ canSpeak, publishing }: CallMember): boolean => canSpeak && publishing

const removed = (state: CallState, gone: ReadonlyArray<CallMember>): CallDecision => {
  if (gone.length === 0) return { state, emissions: [] }
  const members = new Map(state.members)
  for (const { id } of gone) members.delete(id)
  const emissions = gone.map(({ session }): CallEmission => ({ kind: "closed", session }))
  return { state: { ...state, members, changed: true }, emissions }
}

const membersMax = ({ voice }: CallState): number =>
  voice.mode === "p2p" ? channelLimits.voicePeersMax : channelLimits.voiceMembersMax

const isRelayed = ({ voice }: CallState, { relayOnly }: Pick<CallMember, "relayOnly">): boolean =>
  voice.relayOnly || relayOnly

/**
 * Joins, returns to a session, or replaces the player's session by a new one. A session in which others
 * have seen an address that they may not see any more is replaced: its connections must not go on.
 */
const join = (
  state: CallState,
  command: Command<"join">
): Result.Result<CallDecision, VoiceUnavailable> => {
  const { canSpeak, connectionId, newSession: session, playerId, relayOnly } = command
  const known = state.members.get(playerId)
  const isTooDirect =
    known !== undefined &&
    state.voice.mode === "p2p" &&
    !isRelayed(state, known) &&
    isRelayed(state, command)
  if (known !== undefined && known.session === command.session && !isTooDirect) {
    const returned = { ...known, connectionId, relayOnly, canSpeak, absentUntil: null }
    return decided({ ...withMember(state, returned), changed: true })
  }
  if (known === undefined && state.members.size >= membersMax(state)) {
    return Result.fail(new VoiceUnavailable({ message: "The voice call is full." }))
  }
  const before = known === undefined ? { state, emissions: [] } : removed(state, [known])
  const publishing = state.voice.mode === "p2p"
  const joined = changed(before.state, {
    id: playerId,
    connectionId,
    session,
    relayOnly,
    canSpeak,
    publishing,
    absentUntil: null
  })
  return decided(joined, [...before.emissions, { kind: "opened", session }])
}

const leave = (
  state: CallState,
  { connectionId, playerId }: Command<"leave">
): Result.Result<CallDecision, never> => {
  const member = state.members.get(playerId)
  // Connection ids are ordered by time: a command of an older connection comes too late.
  const gone = member === undefined || member.connectionId > connectionId ? [] : [member]
  return Result.succeed(removed(state, gone))
}

const signal = (
  state: CallState,
  { connectionId, data, gen, kind, playerId, to }: Command<"signal">
): Result.Result<CallDecision, NotInChannel> => {
  const sender = state.members.get(playerId)
  if (sender?.connectionId !== connectionId || state.voice.mode !== "p2p") {
    return Result.fail(new NotInChannel({ message: "Join the peer-to-peer call first." }))
  }
  const target = state.members.get(to)
  if (target === undefined || to === playerId || target.absentUntil !== null) return decided(state)
  const hidden = isRelayed(state, sender) || isRelayed(state, target)
  const shown = hidden ? relayed(data) : { data, emptied: false }
  // Clients would read an empty candidate as the end of candidates.
  if (shown.emptied && kind === "candidate") return decided(state)
  const event: VoiceEvent = {
    t: "voice_signal",
    channel: state.channel,
    from: playerId,
    kind,
    ...(shown.data === undefined ? {} : { data: shown.data }),
    ...(gen === undefined ? {} : { gen })
  }
  return decided(state, [{ kind: "event", to: [to], event }])
}

/** Replaces a member, and emits the difference where others hear or see one. */
const updated = (state: CallState, before: CallMember, after: CallMember): CallDecision => {
  const differs = before.canSpeak !== after.canSpeak || before.publishing !== after.publishing
  const { session } = after
  const emissions: ReadonlyArray<CallEmission> =
    isAudible(before) === isAudible(after)
      ? []
      : [{ kind: "microphone", session, open: isAudible(after) }]
  return { state: differs ? changed(state, after) : withMember(state, after), emissions }
}

const publish = (
  state: CallState,
  { on, playerId, session }: Command<"publish">
): Result.Result<CallDecision, NotInChannel> => {
  const member = state.members.get(playerId)
  if (member?.session !== session) {
    return Result.fail(new NotInChannel({ message: "Join the voice call first." }))
  }
  return Result.succeed(updated(state, member, { ...member, publishing: on }))
}

const followed = (member: CallMember, seen: ChannelMember, now: number): CallMember => {
  const isHere = seen.connectionId === member.connectionId
  const absentUntil = isHere ? null : (member.absentUntil ?? now + graceMillis)
  return { ...member, canSpeak: seen.canSpeak, absentUntil }
}

/** Drops members that the channel has no more, and applies the permissions to speak. */
const follow = (
  state: CallState,
  memberOf: Command<"follow">["memberOf"],
  now: number
): CallDecision => {
  const gone: Array<CallMember> = []
  const emissions: Array<CallEmission> = []
  let next = state
  for (const member of state.members.values()) {
    const seen = memberOf(member.id)
    if (seen === undefined) {
      gone.push(member)
      continue
    }
    const after = followed(member, seen, now)
    if (after.canSpeak === member.canSpeak && after.absentUntil === member.absentUntil) continue
    const step = updated(next, member, after)
    next = step.state
    emissions.push(...step.emissions)
  }
  const rest = removed(next, gone)
  return { state: rest.state, emissions: [...emissions, ...rest.emissions] }
}

/** Ends the call for these members. */
const end = (
  state: CallState,
  members: ReadonlyArray<CallMember>,
  { reason, retryAfterMs }: Pick<Command<"end">, "reason" | "retryAfterMs">
): CallDecision => {
  if (members.length === 0) return { state, emissions: [] }
  const { channel } = state
  const ids = members.map(({ id }) => id)
  const events: ReadonlyArray<CallEmission> =
    retryAfterMs === undefined
      ? [{ kind: "event", to: ids, event: voiceClosed(channel, reason) }]
      : ids.map((id) => ({
          kind: "event",
          to: [id],
          event: voiceClosed(channel, reason, retryAfterMs())
        }))
  const { emissions, state: ended } = removed(state, members)
  return { state: ended, emissions: [...events, ...emissions] }
}

const listDueAt = (state: CallState): number =>
  state.changed && state.members.size > 0
    ? state.listedAt + voiceCalls.stateMillis
    : Number.POSITIVE_INFINITY

/** Emits the list of members where it is due. */
export const listed = (state: CallState, now: number): CallDecision => {
  if (now < listDueAt(state)) return { state, emissions: [] }
  const members = allOf(state)
  const event: VoiceEvent = {
    t: "voice_state",
    channel: state.channel,
    members: members.map(({ canSpeak, id, publishing, session }) => ({
      id,
      session,
      canSpeak,
      publishing
    }))
  }
  return {
    state: { ...state, changed: false, listedAt: now },
    emissions: [{ kind: "event", to: members.map(({ id }) => id), event }]
  }
}

const tick = (state: CallState, now: number): CallDecision => {
  if (now >= state.endsAt) return end(state, allOf(state), { reason: "time_limit" })
  const absent = allOf(state).filter(
    ({ absentUntil }) => absentUntil !== null && absentUntil <= now
  )
  return removed(state, absent)
}

/** Time of the next deadline that `tick` handles, Unix milliseconds. */
export const nextDeadline = (state: CallState): number => {
  let next = Math.min(state.endsAt, listDueAt(state))
  for (const { absentUntil } of state.members.values()) {
    next = Math.min(next, absentUntil ?? next)
  }
  return next
}

/** Decides a command. */
export const decide = (
  state: CallState,
  command: CallCommand,
  now: number
): Result.Result<CallDecision, CallError> => {
  switch (command.t) {
    case "join":
      return join(state, command)
    case "leave":
      return leave(state, command)
    case "signal":
      return signal(state, command)
    case "publish":
      return publish(state, command)
    case "failed": {
      const member = memberWith(state, command.session)
      const members = member === undefined ? [] : [member]
      const retryAfterMs = () => command.retryAfterMs
      return Result.succeed(end(state, members, { reason: "unavailable", retryAfterMs }))
    }
    case "follow":
      return Result.succeed(follow(state, command.memberOf, now))
    case "end":
      return Result.succeed(end(state, allOf(state), command))
    case "list":
      return decided({ ...state, changed: true })
    case "tick":
      return Result.succeed(tick(state, now))
  }
}
