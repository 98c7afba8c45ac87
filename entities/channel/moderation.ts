/**
 * Moderation of a channel's players: lists, mutes, kicks and bans. Pure.
 */
import { Result } from "effect"
import type { ModerateOp } from "#rpc/channels/frames"
import { channelLimits } from "#rpc/channels/limits"
import { ChannelListFull, InvalidFrame, OwnerOnly } from "#rpc/errors/codes"
import { removeMembers } from "./membership.ts"
import {
  type ModerationAct,
  type ChannelState,
  type Decision,
  decided,
  type Emission,
  type Lists,
  memberOf,
  selfOf,
  type Expirations
} from "./model.ts"

/** Operations that take a right from a player which an owner needs. */
const removing: ReadonlySet<ModerateOp> = new Set(["mute", "kick", "ban"])

const listFull = Result.fail(new ChannelListFull({ details: { limit: channelLimits.listMax } }))

/** Returns `channel_self` for members whose permissions changed, one per group of equal ones. */
export const selfChanges = (
  before: ChannelState,
  after: ChannelState,
  players: Iterable<string>,
  now: number
): ReadonlyArray<Emission> => {
  const groups = new Map<string, { to: Array<string>; self: ReturnType<typeof selfOf> }>()
  for (const playerId of players) {
    const was = selfOf(before, playerId, now)
    const self = selfOf(after, playerId, now)
    if (was.canSend === self.canSend && was.mutedUntil === self.mutedUntil) continue
    const key = `${self.canSend} ${self.mutedUntil}`
    const group = groups.get(key)
    if (group === undefined) groups.set(key, { to: [playerId], self })
    else group.to.push(playerId)
  }
  return Array.from(groups.values(), ({ self, to }) => ({
    kind: "to",
    to,
    event: { t: "channel_self", channel: after.options.name, ...self }
  }))
}

/** The entries that have not expired. */
const unexpired = (list: Expirations, now: number): Map<string, number | null> =>
  new Map(Array.from(list).filter(([, until]) => until === null || until > now))

type Changed = Result.Result<Lists, ChannelListFull>

const addToList = (
  list: ReadonlySet<string>,
  player: string,
  store: (list: ReadonlySet<string>) => Lists
): Changed => {
  if (list.has(player)) return Result.succeed(store(list))
  if (list.size >= channelLimits.listMax) return listFull
  return Result.succeed(store(new Set(list).add(player)))
}

const removeFromList = (list: ReadonlySet<string>, player: string): ReadonlySet<string> => {
  if (!list.has(player)) return list
  const rest = new Set(list)
  rest.delete(player)
  return rest
}

const setExpiry = (
  list: Expirations,
  { seconds, target }: ModerationAct,
  now: number,
  store: (list: Expirations) => Lists
): Changed => {
  const next = unexpired(list, now)
  if (!next.has(target) && next.size >= channelLimits.listMax) return listFull
  return Result.succeed(
    store(next.set(target, seconds === undefined ? null : now + seconds * 1000))
  )
}

const removeExpiry = (list: Expirations, player: string): Expirations => {
  if (!list.has(player)) return list
  const rest = new Map(list)
  rest.delete(player)
  return rest
}

const listsAfter = (lists: Lists, act: ModerationAct, now: number): Changed => {
  const { allow, banned, muted, speakers } = lists
  const { op, target } = act
  switch (op) {
    case "invite":
      return addToList(allow, target, (list) => ({ ...lists, allow: list }))
    case "uninvite":
      return Result.succeed({ ...lists, allow: removeFromList(allow, target) })
    case "allowSend":
      return addToList(speakers, target, (list) => ({ ...lists, speakers: list }))
    case "disallowSend":
      return Result.succeed({ ...lists, speakers: removeFromList(speakers, target) })
    case "mute":
      return setExpiry(muted, act, now, (list) => ({ ...lists, muted: list }))
    case "unmute":
      return Result.succeed({ ...lists, muted: removeExpiry(muted, target) })
    case "ban":
      return setExpiry(banned, act, now, (list) => ({ ...lists, banned: list }))
    case "unban":
      return Result.succeed({ ...lists, banned: removeExpiry(banned, target) })
    case "kick":
      return Result.succeed(lists)
  }
}

const isSame = (a: Lists, b: Lists): boolean =>
  a.allow === b.allow && a.speakers === b.speakers && a.muted === b.muted && a.banned === b.banned

const selfAct = "Expected another player; an owner leaves with channelLeave"

/** Applies an act of the owner, who may not remove or silence itself. */
export const moderateAsOwner = (
  state: ChannelState,
  { playerId, ...act }: ModerationAct & { readonly playerId: string },
  now: number
): Result.Result<Decision, ChannelListFull | InvalidFrame | OwnerOnly> => {
  if (state.options.ownerId !== playerId) return Result.fail(new OwnerOnly())
  if (act.target !== playerId || !removing.has(act.op)) return moderate(state, act, now)
  return Result.fail(InvalidFrame.at("playerId", selfAct))
}

/** Applies a moderation act to a player, who need not be a member. */
export const moderate = (
  state: ChannelState,
  act: ModerationAct,
  now: number
): Result.Result<Decision, ChannelListFull> =>
  Result.flatMap(listsAfter(state.lists, act, now), (lists) => {
    const same = isSame(state.lists, lists)
    const next = same ? state : { ...state, lists }
    const member = memberOf(state, act.target)
    if (member === undefined) return decided(next)
    if (act.op === "kick" || act.op === "ban") {
      const reason = act.op === "kick" ? "kicked" : "banned"
      return Result.succeed(removeMembers(next, [member], reason, now, reason))
    }
    return decided(next, selfChanges(state, next, [act.target], now))
  })

/** Removes expired mutes and notifies the members who were muted. */
export const endMutes = (state: ChannelState, now: number): Decision => {
  const muted = unexpired(state.lists.muted, now)
  if (muted.size === state.lists.muted.size) return { state, emissions: [] }
  const expired = Array.from(state.lists.muted.keys()).filter((player) => !muted.has(player))
  const emissions = expired.flatMap((player): ReadonlyArray<Emission> => {
    if (memberOf(state, player) === undefined) return []
    const self = selfOf(state, player, now)
    const event = { t: "channel_self", channel: state.options.name, ...self } as const
    return [{ kind: "to", to: [player], event }]
  })
  return { state: { ...state, lists: { ...state.lists, muted } }, emissions }
}
