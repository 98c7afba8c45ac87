/**
 * Membership of a channel: joining, leaving, and the transfer of ownership. Pure; part of the channel's state machine.
 */
import { HashMap, Result } from "effect"
import {
  ChannelBanned,
  ChannelForbidden,
  ChannelFull,
  PlayerRequired,
  Unavailable
} from "#rpc/errors/codes"
import type { ChannelCloseReason, ChannelLeaveReason } from "#rpc/channels/frames"
import { channelLimits } from "#rpc/channels/limits"
import { absent } from "../reconnect-grace.ts"
import { withBlocks, withoutBlocks } from "./delivery.ts"
import {
  type Attachment,
  type ChannelState,
  type Decision,
  decided,
  type Emission,
  activeEntry,
  isoOrNull,
  listenersOf,
  type Member,
  memberOf,
  membersOf,
  type JoiningPlayer,
  selfOf,
  settingsView
} from "./model.ts"

const emptyMillis = channelLimits.emptySeconds * 1000

export const withMember = (state: ChannelState, member: Member): ChannelState => ({
  ...state,
  members: HashMap.set(state.members, member.id, member)
})

const ownerChanged = (state: ChannelState): Emission => ({
  kind: "all",
  event: { t: "channel_changed", channel: settingsView(state.options) }
})

/** Returns why a player may not join, or undefined. */
const joinError = (
  { lists, members, options }: ChannelState,
  { openChat, playerId }: JoiningPlayer,
  now: number
): ChannelBanned | ChannelForbidden | ChannelFull | undefined => {
  const banned = activeEntry(lists.banned, playerId, now)
  if (banned !== undefined)
    return new ChannelBanned({ details: { until: isoOrNull(banned.until) } })
  if (!openChat && !options.managed) return new ChannelForbidden()
  const invited = lists.allow.has(playerId) || options.ownerId === playerId
  if (options.join === "invited" && !invited) return new ChannelForbidden()
  return HashMap.size(members) >= options.maxMembers ? new ChannelFull() : undefined
}

/** Sets the display name of a member. */
export const rename = (state: ChannelState, playerId: string, displayName: string): Decision => {
  const member = memberOf(state, playerId)
  if (member === undefined || member.displayName === displayName) return { state, emissions: [] }
  const player = { id: playerId, displayName }
  const event = { t: "player_updated", channel: state.options.name, player } as const
  const renamed = withMember(state, { ...member, displayName })
  return { state: renamed, emissions: [{ kind: "all", event }] }
}

const exitOf = (member: Member): ReadonlyArray<Emission> =>
  member.attachment === null ? [] : [{ kind: "exit", playerId: member.id, ...member.attachment }]

/** Attaches a connection to a member. The others never learned of its absence. */
const attach = (
  state: ChannelState,
  member: Member,
  { connectionId, node }: Attachment
): Result.Result<Decision, Unavailable> => {
  const holder = member.attachment
  // Connection ids are ordered by time: a command of an older connection comes too late.
  if (holder !== null && holder.connectionId > connectionId) return Result.fail(new Unavailable())
  const attached = { ...member, attachment: { node, connectionId }, absence: null }
  const exits = holder === null || holder.connectionId === connectionId ? [] : exitOf(member)
  return decided(withMember(state, attached), [...exits, { kind: "enter", playerId: member.id }])
}

/** Joins, or returns. The first member of an unmanaged channel without an owner becomes its owner. */
export const join = (
  state: ChannelState,
  joiningPlayer: JoiningPlayer,
  now: number
): Result.Result<
  Decision,
  ChannelBanned | ChannelForbidden | ChannelFull | PlayerRequired | Unavailable
> => {
  const { blocks, connectionId, displayName, joinedAt = now, node, playerId } = joiningPlayer
  const known = memberOf(state, playerId)
  const blocking = blocks === undefined ? state : withBlocks(state, playerId, blocks)
  if (joiningPlayer.renames === true) {
    const isOlder = (known?.attachment?.connectionId ?? connectionId) > connectionId
    return known === undefined || isOlder
      ? decided(state)
      : Result.succeed(rename(blocking, playerId, displayName))
  }
  if (known !== undefined) return attach(blocking, known, joiningPlayer)
  const error = joinError(state, joiningPlayer, now)
  if (error !== undefined) return Result.fail(error)
  const attachment = { node, connectionId }
  const member: Member = { id: playerId, displayName, joinedAt, attachment, absence: null }
  const { managed, ownerId } = state.options
  const becomesOwner = !managed && ownerId === null
  const joined: ChannelState = {
    ...withMember(blocking, member),
    options: becomesOwner ? { ...state.options, ownerId: playerId } : state.options,
    ownerAway: ownerId === playerId ? null : state.ownerAway,
    emptySince: null
  }
  return decided(joined, [
    { kind: "joined", member },
    ...(becomesOwner ? [ownerChanged(joined)] : []),
    { kind: "enter", playerId }
  ])
}

/** Makes the earliest member the owner if the owner is no longer a member. */
export const transferOwnership = (state: ChannelState, now: number): Decision => {
  const { ownerId } = state.options
  if (ownerId === null || memberOf(state, ownerId) !== undefined) return { state, emissions: [] }
  const [successor] = membersOf(state)
  const transferred: ChannelState = {
    ...state,
    options: { ...state.options, ownerId: successor?.id ?? null },
    ownerAway: null
  }
  if (successor === undefined) return { state: transferred, emissions: [] }
  const self = selfOf(transferred, successor.id, now)
  const selfChanged: Emission = {
    kind: "to",
    to: [successor.id],
    event: { t: "channel_self", channel: state.options.name, ...self }
  }
  const gainsSpeech = self.canSend && !selfOf(state, successor.id, now).canSend
  return {
    state: transferred,
    emissions: [ownerChanged(transferred), ...(gainsSpeech ? [selfChanged] : [])]
  }
}

/** Removes members; with `closeReason` their connections receive `channel_closed`. */
export const removeMembers = (
  state: ChannelState,
  members: ReadonlyArray<Member>,
  reason: ChannelLeaveReason,
  now: number,
  closeReason: ChannelCloseReason | null = null
): Decision => {
  let left = state.members
  const emissions: Array<Emission> = []
  for (const member of members) {
    left = HashMap.remove(left, member.id)
    if (closeReason !== null) {
      const event = {
        t: "channel_closed",
        channel: state.options.name,
        reason: closeReason
      } as const
      emissions.push({ kind: "to", to: [member.id], event })
    }
    emissions.push(...exitOf(member), { kind: "left", playerId: member.id, reason })
  }
  const becomesEmpty = HashMap.isEmpty(left) && !state.options.managed
  const remaining = {
    ...state,
    members: left,
    blocks: withoutBlocks(state, members),
    emptySince: becomesEmpty
      ? (state.emptySince ?? absent(now, emptyMillis, { byService: false }))
      : null
  }
  const ownerLeaves = members.some(({ id }) => id === state.options.ownerId)
  if (!ownerLeaves) return { state: remaining, emissions }
  const transfer = transferOwnership(remaining, now)
  return { state: transfer.state, emissions: [...emissions, ...transfer.emissions] }
}

export const withListeners = (state: ChannelState, node: string, count: number): ChannelState => {
  if ((state.listeners.get(node) ?? 0) === count) return state
  const listeners = new Map(state.listeners)
  if (count === 0) listeners.delete(node)
  else listeners.set(node, count)
  return { ...state, listeners }
}

/** Adds an anonymous listener. */
export const listen = (
  state: ChannelState,
  command: Attachment & { readonly listeners: number }
): Result.Result<Decision, ChannelFull | PlayerRequired> => {
  const { connectionId, listeners, node } = command
  if (!state.options.open) return Result.fail(new PlayerRequired())
  if (listenersOf(state) >= channelLimits.listenersMax) return Result.fail(new ChannelFull())
  return decided(withListeners(state, node, listeners), [{ kind: "listen", node, connectionId }])
}
