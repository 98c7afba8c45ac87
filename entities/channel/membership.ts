/**
 * Who is in a channel (decisions 3.9.6): joining, leaving, the quiet grace after a drop, the owner's
 * succession. Pure; part of the channel's state machine.
 */
import { HashMap, Result } from "effect"
import {
  ChannelBanned,
  ChannelForbidden,
  ChannelFull,
  PlayerRequired,
  Unavailable
} from "#rpc/errors/codes"
import type { ChannelCloseReason, ChannelLeaveReason } from "#rpc/channels"
import { channels as limits } from "#rpc/limits"
import {
  type Attachment,
  type ChannelState,
  type Decision,
  decided,
  type Emission,
  inForce,
  isoOrNull,
  listenersOf,
  type Member,
  memberOf,
  membersOf,
  type JoiningPlayer,
  selfOf,
  settingsView
} from "./model.ts"

const graceMillis = limits.graceSeconds * 1000
const emptyMillis = limits.emptySeconds * 1000
/** Graces end on this grid, so that those of a crowd end together. */
const gridMillis = 250

const withMember = (state: ChannelState, member: Member): ChannelState => ({
  ...state,
  members: HashMap.set(state.members, member.id, member)
})

const changedOwner = (state: ChannelState): Emission => ({
  kind: "all",
  event: { t: "channel_changed", channel: settingsView(state.options) }
})

/** Why a player may not come in, if so. */
const refusal = (
  { lists, members, options }: ChannelState,
  { openChat, playerId }: JoiningPlayer,
  now: number
): ChannelBanned | ChannelForbidden | ChannelFull | undefined => {
  const banned = inForce(lists.banned, playerId, now)
  if (banned !== undefined)
    return new ChannelBanned({ details: { until: isoOrNull(banned.until) } })
  if (!openChat && !options.managed) return new ChannelForbidden()
  const invited = lists.allow.has(playerId) || options.ownerId === playerId
  if (options.join === "invited" && !invited) return new ChannelForbidden()
  return HashMap.size(members) >= options.maxMembers ? new ChannelFull() : undefined
}

const leavesBehind = (member: Member): ReadonlyArray<Emission> =>
  member.attachment === null ? [] : [{ kind: "exit", playerId: member.id, ...member.attachment }]

/** A member's socket is here (again); the others never knew that it was gone. */
const attach = (
  state: ChannelState,
  member: Member,
  { connectionId, node }: Attachment
): Result.Result<Decision, Unavailable> => {
  const holder = member.attachment
  // What an older connection asked for comes too late, ids of connections being ordered by time.
  if (holder !== null && holder.connectionId > connectionId) return Result.fail(new Unavailable())
  const back = { ...member, attachment: { node, connectionId }, absentUntil: null }
  const exits = holder === null || holder.connectionId === connectionId ? [] : leavesBehind(member)
  return decided(withMember(state, back), [...exits, { kind: "enter", playerId: member.id }])
}

/** Comes in, or comes back. The first in an ownerless channel of players owns it. */
export const join = (
  state: ChannelState,
  joiningPlayer: JoiningPlayer,
  now: number
): Result.Result<
  Decision,
  ChannelBanned | ChannelForbidden | ChannelFull | PlayerRequired | Unavailable
> => {
  const { connectionId, displayName, joinedAt = now, node, playerId } = joiningPlayer
  const known = memberOf(state, playerId)
  if (known !== undefined) return attach(state, known, joiningPlayer)
  const refused = refusal(state, joiningPlayer, now)
  if (refused !== undefined) return Result.fail(refused)
  const attachment = { node, connectionId }
  const member: Member = { id: playerId, displayName, joinedAt, attachment, absentUntil: null }
  const { managed, ownerId } = state.options
  const owns = !managed && ownerId === null
  const joined: ChannelState = {
    ...withMember(state, member),
    options: owns ? { ...state.options, ownerId: playerId } : state.options,
    ownerUntil: ownerId === playerId ? null : state.ownerUntil,
    emptyUntil: null
  }
  return decided(joined, [
    { kind: "joined", member },
    ...(owns ? [changedOwner(joined)] : []),
    { kind: "enter", playerId }
  ])
}

/** Hands a channel of players on to its earliest member when the owner is out. */
export const transferOwnership = (state: ChannelState, now: number): Decision => {
  const { ownerId } = state.options
  if (ownerId === null || memberOf(state, ownerId) !== undefined) return { state, emissions: [] }
  const [heir] = membersOf(state)
  const handed: ChannelState = {
    ...state,
    options: { ...state.options, ownerId: heir?.id ?? null },
    ownerUntil: null
  }
  if (heir === undefined) return { state: handed, emissions: [] }
  const self = selfOf(handed, heir.id, now)
  const tells: Emission = {
    kind: "to",
    to: [heir.id],
    event: { t: "channel_self", channel: state.options.name, ...self }
  }
  const speaksNow = self.canSend && !selfOf(state, heir.id, now).canSend
  return { state: handed, emissions: [changedOwner(handed), ...(speaksNow ? [tells] : [])] }
}

/** Takes members out, and tells those who do not go by themselves why. */
export const removeMembers = (
  state: ChannelState,
  members: ReadonlyArray<Member>,
  reason: ChannelLeaveReason,
  now: number,
  told: ChannelCloseReason | null = null
): Decision => {
  let left = state.members
  const emissions: Array<Emission> = []
  for (const member of members) {
    left = HashMap.remove(left, member.id)
    if (told !== null) {
      const event = { t: "channel_closed", channel: state.options.name, reason: told } as const
      emissions.push({ kind: "to", to: [member.id], event })
    }
    emissions.push(...leavesBehind(member), { kind: "left", playerId: member.id, reason })
  }
  const empties = HashMap.isEmpty(left) && !state.options.managed
  const remaining = {
    ...state,
    members: left,
    emptyUntil: empties ? (state.emptyUntil ?? now + emptyMillis) : null
  }
  const goes = members.some(({ id }) => id === state.options.ownerId)
  if (!goes) return { state: remaining, emissions }
  const succession = transferOwnership(remaining, now)
  return { state: succession.state, emissions: [...emissions, ...succession.emissions] }
}

const absent = (state: ChannelState, member: Member, now: number): ChannelState => {
  const absentUntil = Math.ceil((now + graceMillis) / gridMillis) * gridMillis
  return {
    ...withMember(state, { ...member, attachment: null, absentUntil }),
    graceAt: Math.min(state.graceAt ?? absentUntil, absentUntil)
  }
}

/** A socket is gone. Only the connection that the member is on can be missed. */
export const disconnect = (
  state: ChannelState,
  playerId: string,
  connectionId: string,
  now: number
): Result.Result<Decision, never> => {
  const member = memberOf(state, playerId)
  return decided(
    member?.attachment?.connectionId === connectionId ? absent(state, member, now) : state
  )
}

const onNode = (state: ChannelState, node: string): ReadonlyArray<Member> =>
  HashMap.toValues(state.members).filter(({ attachment }) => attachment?.node === node)

/** A node is gone, and with it every socket it held. */
export const dropNode = (
  state: ChannelState,
  node: string,
  now: number
): Result.Result<Decision, never> => {
  let next = state
  for (const member of onNode(state, node)) next = absent(next, member, now)
  return decided(withListeners(next, node, 0))
}

export const withListeners = (state: ChannelState, node: string, count: number): ChannelState => {
  if ((state.listeners.get(node) ?? 0) === count) return state
  const listeners = new Map(state.listeners)
  if (count === 0) listeners.delete(node)
  else listeners.set(node, count)
  return { ...state, listeners }
}

/** An anonymous connection comes in, to listen. */
export const listen = (
  state: ChannelState,
  command: Attachment & { readonly listeners: number }
): Result.Result<Decision, ChannelFull | PlayerRequired> => {
  const { connectionId, listeners, node } = command
  if (!state.options.open) return Result.fail(new PlayerRequired())
  if (listenersOf(state) >= limits.listenersMax) return Result.fail(new ChannelFull())
  return decided(withListeners(state, node, listeners), [{ kind: "listen", node, connectionId }])
}

/** Ends the graces that are over. */
export const expire = (state: ChannelState, now: number): Decision => {
  if (state.graceAt === null || now < state.graceAt) return { state, emissions: [] }
  const over: Array<Member> = []
  let graceAt: number | null = null
  for (const member of HashMap.values(state.members)) {
    const until = member.absentUntil
    if (until === null) continue
    if (until <= now) over.push(member)
    else graceAt = Math.min(graceAt ?? until, until)
  }
  return removeMembers({ ...state, graceAt }, over, "timeout", now)
}
