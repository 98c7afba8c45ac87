/**
 * Absent members of a room: who becomes absent, when the others learn of it, when the grace ends, and what
 * moves its end. Pure; part of the room's state machine.
 */
import { Result } from "effect"
import { roomLimits } from "#rpc/rooms/limits"
import {
  absent,
  afterGap,
  afterHold,
  type Grace,
  graceDeadline,
  graceEnd,
  isSeenTooLongAgo
} from "../reconnect-grace.ts"
import {
  type Decision,
  decided,
  type Emission,
  iso,
  type Member,
  type RoomCommand,
  type RoomState,
  toOthers,
  withMember
} from "./model.ts"

const seconds = 1000

const graceMillis = ({ settings }: RoomState): number => settings.graceSeconds * seconds

const graceOf = (state: RoomState): Grace => ({
  millis: graceMillis(state),
  heldSince: state.heldSince
})

/** The end of a member's grace as known now, Unix milliseconds; null while connected. */
export const graceEndOf = (state: RoomState, member: Member, now: number): number | null =>
  member.absence === null
    ? null
    : Math.max(graceEnd(member.absence, graceOf(state), now), member.announceAt ?? 0)

/** The latest time to which holds may move the end of a member's grace; null while connected. */
export const graceDeadlineOf = (state: RoomState, member: Member): number | null =>
  member.absence === null
    ? null
    : Math.max(graceDeadline(member.absence, graceOf(state)), member.announceAt ?? 0)

/**
 * Whether the bound of absences has passed for a member of whose node the room has not heard since it woke. On
 * the connection that it had, it may still be there.
 */
export const isForgotten = (state: RoomState, { seenAt }: Member, now: number): boolean =>
  seenAt !== null && isSeenTooLongAgo(seenAt, graceMillis(state), now)

/** Whether any member is absent whose connection did not end because of the service. */
export const hasDropped = ({ members }: RoomState): boolean =>
  Array.from(members.values()).some(({ absence }) => absence?.byService === false)

/** Whether any member is absent. */
const hasAbsent = ({ members }: RoomState): boolean =>
  Array.from(members.values()).some(({ absence }) => absence !== null)

const mapMembers = (state: RoomState, change: (member: Member) => Member): RoomState => ({
  ...state,
  members: new Map(Array.from(state.members, ([id, member]) => [id, change(member)]))
})

const release = (state: RoomState, heldSince: number, now: number): RoomState => ({
  ...mapMembers(state, (member) =>
    member.absence === null
      ? member
      : { ...member, absence: afterHold(member.absence, heldSince, now, graceMillis(state)) }
  ),
  heldSince: null
})

/**
 * Holds the graces of the room, or lets them run again. `heldFrom` is since when players of the environment
 * wait; null while none does. Without an absent member there is nothing to hold.
 */
export const hold = (state: RoomState, heldFrom: number | null, now: number): RoomState => {
  const { heldSince, wokenAt } = state
  if (heldSince === null) {
    if (heldFrom === null || !hasAbsent(state)) return state
    return { ...state, heldSince: Math.min(now, Math.max(heldFrom, wokenAt)) }
  }
  return heldFrom === null || !hasAbsent(state) ? release(state, heldSince, now) : state
}

/**
 * Wakes a room on a runner from the snapshot that was written then. Between then and now the room was
 * nowhere, so its graces and its other deadlines stood still. Members with a connection may still have it:
 * their nodes say so.
 */
export const awaken = (stored: RoomState, writtenAt: number, now: number): RoomState => {
  const gap = { from: Math.min(writtenAt, now), to: now }
  const missed = gap.to - gap.from
  const state = stored.heldSince === null ? stored : release(stored, stored.heldSince, gap.from)
  const moved = mapMembers(state, (member) => ({
    ...member,
    absence: member.absence === null ? null : afterGap(member.absence, gap, graceMillis(state)),
    seenAt: member.attachment === null ? null : (member.seenAt ?? gap.from),
    joinDeadline: member.joinDeadline === null ? null : member.joinDeadline + missed
  }))
  const { vote } = state.rights
  const rights =
    vote === null
      ? state.rights
      : { ...state.rights, vote: { ...vote, endsAt: vote.endsAt + missed } }
  return { ...moved, rights, lastFrameAt: state.lastFrameAt + missed, wokenAt: now }
}

/** Marks a member absent, and announces it after the quiet time. */
const leaveConnection = (
  state: RoomState,
  member: Member,
  now: number,
  { byService, quietSeconds = 0 }: { readonly byService: boolean; readonly quietSeconds?: number }
): Decision => {
  const seenAt = member.seenAt ?? undefined
  const away: Member = {
    ...member,
    attachment: null,
    joinDeadline: null,
    seenAt: null,
    absence: absent(now, graceMillis(state), { byService, seenAt }),
    announceAt: now + quietSeconds * seconds,
    announced: false
  }
  return announce(withMember(state, away), now)
}

/** Starts the grace of a member. Ignores a connection that does not hold the seat. */
export const disconnect = (
  state: RoomState,
  command: Extract<RoomCommand, { t: "disconnect" }>,
  now: number
): Result.Result<Decision, never> => {
  const member = state.members.get(command.playerId)
  if (member?.attachment?.connectionId !== command.connectionId) return decided(state)
  const quietSeconds = command.replaced ? roomLimits.replacedQuietSeconds : 0
  const byService = command.drained === true
  return Result.succeed(leaveConnection(state, member, now, { byService, quietSeconds }))
}

/** Marks all members of a node absent. */
export const drop = (
  state: RoomState,
  node: string,
  now: number
): Result.Result<Decision, never> => {
  let next = state
  const emissions: Array<Emission> = []
  for (const member of state.members.values()) {
    if (member.attachment?.node !== node) continue
    const decision = leaveConnection(next, member, now, { byService: true })
    next = decision.state
    emissions.push(...decision.emissions)
  }
  return decided(next, emissions)
}

/** Sets a join deadline for the members of a node that attaches without naming them. */
export const expect = (
  state: RoomState,
  node: string,
  now: number
): Result.Result<Decision, never> => {
  let next = state
  for (const member of state.members.values()) {
    if (member.attachment?.node !== node || member.joinDeadline !== null) continue
    next = withMember(next, {
      ...member,
      joinDeadline: now + roomLimits.joinDeadlineSeconds * seconds
    })
  }
  return decided(next)
}

/** Marks players absent whose node came back and has not named them by the join deadline. */
export const expireJoinDeadlines = (state: RoomState, now: number): Decision => {
  let next = state
  const emissions: Array<Emission> = []
  for (const member of state.members.values()) {
    if (member.joinDeadline === null || now < member.joinDeadline) continue
    const decision = leaveConnection(next, member, now, { byService: false })
    next = decision.state
    emissions.push(...decision.emissions)
  }
  return { state: next, emissions, data: {} }
}

/** Emits events for absences whose quiet time has ended. */
export const announce = (state: RoomState, now: number): Decision => {
  let next = state
  const emissions: Array<Emission> = []
  for (const member of state.members.values()) {
    const until = graceEndOf(state, member, now)
    if (until === null || member.announced || now < (member.announceAt ?? now)) continue
    next = withMember(next, { ...member, announced: true })
    emissions.push(
      toOthers(
        {
          t: "player_disconnected",
          playerId: member.id,
          graceUntil: iso(until)
        },
        member.id
      )
    )
  }
  return { state: next, emissions, data: {} }
}
