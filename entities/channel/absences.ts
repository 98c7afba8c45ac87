/**
 * Absent members of a channel, an owner who is away, and a channel without members: when their time ends,
 * and what moves its end. The others learn nothing of an absence before its end. Pure; part of the
 * channel's state machine.
 */
import { HashMap, Result } from "effect"
import { channelLimits } from "#rpc/channels/limits"
import {
  type Absence,
  absent,
  afterGap,
  afterHold,
  graceDeadline,
  graceEnd
} from "../reconnect-grace.ts"
import { removeMembers, withListeners, withMember } from "./membership.ts"
import { type ChannelState, type Decision, decided, type Member, memberOf } from "./model.ts"

const graceMillis = channelLimits.graceSeconds * 1000
const emptyMillis = channelLimits.emptySeconds * 1000
/** Grid in milliseconds on which graces end, so that many members leave in one step. */
const gridMillis = 250

const onGrid = (millis: number): number => Math.ceil(millis / gridMillis) * gridMillis

/** The end of a member's grace as known now. */
const untilOf = (absence: Absence, { heldSince }: ChannelState, now: number): number =>
  onGrid(graceEnd(absence, { millis: graceMillis, heldSince }, now))

/** The latest time to which holds may move it. */
const deadlineOf = (absence: Absence, { heldSince }: ChannelState): number =>
  onGrid(graceDeadline(absence, { millis: graceMillis, heldSince }))

/** Whether the time of an absent owner, or of an empty channel, has ended. */
export const isOver = (
  absence: Absence | null,
  { heldSince }: ChannelState,
  now: number
): boolean => absence !== null && now >= graceEnd(absence, { millis: emptyMillis, heldSince }, now)

/** Time at which a tick ends the first of all graces, or looks again; infinite when there is none. */
export const absenceDeadline = (state: ChannelState): number => {
  const { emptySince, graceAt, heldSince, ownerAway } = state
  const end = (absence: Absence | null): number =>
    absence === null
      ? Number.POSITIVE_INFINITY
      : graceDeadline(absence, { millis: emptyMillis, heldSince })
  return Math.min(graceAt ?? Number.POSITIVE_INFINITY, end(ownerAway), end(emptySince))
}

const leaveConnection = (
  state: ChannelState,
  member: Member,
  now: number,
  byService: boolean
): ChannelState => {
  const absence = absent(now, graceMillis, { byService })
  const until = deadlineOf(absence, state)
  return {
    ...withMember(state, { ...member, attachment: null, absence }),
    graceAt: Math.min(state.graceAt ?? until, until)
  }
}

/** Starts the grace of a member. Ignores a connection that a newer one replaced. */
export const disconnect = (
  state: ChannelState,
  command: {
    readonly playerId: string
    readonly connectionId: string
    readonly drained?: boolean
  },
  now: number
): Result.Result<Decision, never> => {
  const member = memberOf(state, command.playerId)
  return decided(
    member?.attachment?.connectionId === command.connectionId
      ? leaveConnection(state, member, now, command.drained === true)
      : state
  )
}

/** Disconnects all members and listeners of a node. */
export const dropNode = (
  state: ChannelState,
  node: string,
  now: number
): Result.Result<Decision, never> => {
  let next = state
  for (const member of HashMap.values(state.members)) {
    if (member.attachment?.node === node) next = leaveConnection(next, member, now, true)
  }
  return decided(withListeners(next, node, 0))
}

/** Removes the members whose grace has ended. */
export const expire = (state: ChannelState, now: number): Decision => {
  if (state.graceAt === null || now < state.graceAt) return { state, emissions: [] }
  const over: Array<Member> = []
  let graceAt: number | null = null
  for (const member of HashMap.values(state.members)) {
    const { absence } = member
    if (absence === null) continue
    if (untilOf(absence, state, now) <= now) over.push(member)
    else graceAt = Math.min(graceAt ?? Number.POSITIVE_INFINITY, deadlineOf(absence, state))
  }
  return removeMembers({ ...state, graceAt }, over, "timeout", now)
}

const mapAbsences = (
  state: ChannelState,
  change: (absence: Absence, millis: number) => Absence
): ChannelState => {
  const owner = state.ownerAway
  const empty = state.emptySince
  const members = HashMap.map(state.members, (member) =>
    member.absence === null ? member : { ...member, absence: change(member.absence, graceMillis) }
  )
  const next = {
    ...state,
    members,
    heldSince: null,
    ownerAway: owner === null ? null : change(owner, emptyMillis),
    emptySince: empty === null ? null : change(empty, emptyMillis)
  }
  return { ...next, graceAt: firstGrace(next) }
}

const firstGrace = (state: ChannelState): number | null => {
  let graceAt: number | null = null
  for (const { absence } of HashMap.values(state.members)) {
    if (absence === null) continue
    graceAt = Math.min(graceAt ?? Number.POSITIVE_INFINITY, deadlineOf(absence, state))
  }
  return graceAt
}

const release = (state: ChannelState, heldSince: number, now: number): ChannelState =>
  mapAbsences(state, (absence, millis) => afterHold(absence, heldSince, now, millis))

/**
 * Holds the graces of the channel, or lets them run again. `heldFrom` is since when players of the
 * environment wait; null while none does.
 */
export const hold = (state: ChannelState, heldFrom: number | null, now: number): ChannelState => {
  const { emptySince, graceAt, heldSince, ownerAway, wokenAt } = state
  if (heldFrom === null) return heldSince === null ? state : release(state, heldSince, now)
  const isNeeded = graceAt !== null || ownerAway !== null || emptySince !== null
  if (heldSince !== null || !isNeeded) return state
  return { ...state, heldSince: Math.min(now, Math.max(heldFrom, wokenAt)) }
}

/** Decides with graces that are held as they should be now, before and after. */
export const holding =
  <E>(
    decide: (state: ChannelState, now: number) => Result.Result<Decision, E>,
    heldFrom: number | null
  ) =>
  (state: ChannelState, now: number): Result.Result<Decision, E> =>
    Result.map(decide(hold(state, heldFrom, now), now), (decision) => ({
      ...decision,
      state: hold(decision.state, heldFrom, now)
    }))

/** The absent members, as a channel keeps them that leaves its runner: their graces stand still. */
export const absentOf = (state: ChannelState, now: number): ReadonlyArray<Member> => {
  if (state.graceAt === null) return []
  const { heldSince } = state
  const settled = heldSince === null ? state : release(state, heldSince, now)
  return HashMap.toValues(settled.members).filter(({ absence }) => absence !== null)
}

/** Gives a channel that wakes its absent members back. */
export const withAbsent = (
  state: ChannelState,
  members: ReadonlyArray<Member>,
  gap: { readonly from: number; readonly to: number }
): ChannelState => {
  const kept = members.flatMap(({ absence, ...member }) =>
    absence === null ? [] : [{ ...member, absence: afterGap(absence, gap, graceMillis) }]
  )
  if (kept.length === 0) return state
  const isHere = kept.some(({ id }) => id === state.options.ownerId)
  const next: ChannelState = {
    ...state,
    members: HashMap.fromIterable(kept.map((member) => [member.id, member] as const)),
    ownerAway: isHere ? null : state.ownerAway,
    emptySince: null
  }
  return { ...next, graceAt: firstGrace(next) }
}
