/**
 * Seats, host and deadlines of a room: joining, leaving, the end of graces, host migration.
 * Pure; part of the room's state machine.
 */
import { Result } from "effect"
import {
  NotInRoom,
  P2pRoomFull,
  ResumeExpired,
  RoomFull,
  RoomLocked,
  RoomNotFound,
  Unavailable
} from "#rpc/errors/codes"
import type { HostChange, LeaveReason, RoomEvent } from "#rpc/rooms/events"
import { roomLimits } from "#rpc/rooms/limits"
import {
  type Decision,
  decided,
  isDeserted,
  type Emission,
  type Member,
  type JoiningPlayer,
  nameChange,
  playerView,
  type Returning,
  roomJoined,
  type RoomState,
  toAll,
  toOthers,
  withMember
} from "./model.ts"
import {
  announce,
  expireJoinDeadlines,
  graceDeadlineOf,
  graceEndOf,
  isForgotten
} from "./absences.ts"
import { isBarred, wasRemoved } from "./bars.ts"
import { blocksFrom, reach, unknownBlocks } from "../reach.ts"
import { emptyJsonState } from "./json-state.ts"
import { nextTeam } from "./teams.ts"

const seconds = 1000

const hostEvent = (
  hostId: string,
  previousHostId: string | null,
  reason: HostChange
): RoomEvent => ({ t: "host_changed", hostId, previousHostId, reason })

const earliestConnected = (state: RoomState): Member | undefined => {
  for (const member of state.members.values()) {
    if (member.attachment !== null) return member
  }
  return undefined
}

/** Time at which an absent host loses its role, some seconds after the room is awake at least. */
const hostUntil = ({ wokenAt }: RoomState, { absence }: Member): number | null =>
  absence === null
    ? null
    : Math.max(absence.droppedAt, wokenAt) + roomLimits.hostGraceSeconds * seconds

const hostIsOverdue = (state: RoomState, now: number): boolean => {
  const host = state.hostId === null ? undefined : state.members.get(state.hostId)
  if (host === undefined) return true
  const until = hostUntil(state, host)
  return until !== null && now >= until
}

/** Chooses a new host if there is none or the host has been absent too long. */
const migrateHost = (
  state: RoomState,
  now: number,
  reason: LeaveReason
): readonly [RoomState, ReadonlyArray<Emission>] => {
  if (!hostIsOverdue(state, now)) return [state, []]
  const next = earliestConnected(state)
  if (next === undefined) return [state, []]
  return [{ ...state, hostId: next.id }, [toAll(hostEvent(next.id, state.hostId, reason))]]
}

const entering = (state: RoomState, playerId: string, resumed: boolean): Emission => ({
  event: roomJoined(state, playerId, resumed),
  to: [playerId],
  except: null,
  membership: "enter"
})

const ref = (state: RoomState) => ({ roomId: state.settings.id, code: state.settings.code })

const newMember = (
  joiningPlayer: JoiningPlayer,
  now: number,
  joinDeadline: number | null
): Member => ({
  id: joiningPlayer.playerId,
  displayName: joiningPlayer.displayName,
  relayOnly: joiningPlayer.relayOnly,
  joinedAt: now,
  playerState: emptyJsonState,
  blocks: blocksFrom(joiningPlayer.blocks),
  attachment: { node: joiningPlayer.node, connectionId: joiningPlayer.connectionId },
  joinDeadline,
  arrived: joinDeadline === null,
  seenAt: null,
  absence: null,
  announceAt: null,
  announced: false
})

/**
 * Attaches a connection, which knows the newest name, to a member: a snapshot for the member, events for
 * the others. Fails if a newer connection holds the seat; connection ids are ordered by time.
 */
const attach = (
  state: RoomState,
  member: Member,
  { blocks, connectionId, displayName = member.displayName, node, relayOnly }: Returning,
  now: number
): Result.Result<Decision, Unavailable> => {
  const holder = member.attachment
  if (holder !== null && holder.connectionId > connectionId) return Result.fail(new Unavailable())
  const attached = withMember(state, {
    ...member,
    displayName,
    relayOnly,
    blocks: blocks === undefined ? member.blocks : blocksFrom(blocks),
    attachment: { node, connectionId },
    joinDeadline: null,
    arrived: true,
    seenAt: null,
    absence: null,
    announceAt: null,
    announced: false
  })
  const [hosted, hostEvents] = migrateHost(attached, now, "timeout")
  const returned: ReadonlyArray<Emission> = member.announced
    ? [toOthers({ t: "player_reconnected", playerId: member.id }, member.id)]
    : []
  return decided(
    hosted,
    [
      ...returned,
      ...nameChange(member, displayName).map((event) => toOthers(event, member.id)),
      ...hostEvents.map((emission) => ({ ...emission, except: member.id })),
      entering(hosted, member.id, member.absence !== null)
    ],
    ref(state)
  )
}

const admit = (
  state: RoomState,
  joiningPlayer: JoiningPlayer,
  now: number,
  joinDeadline: number | null
): RoomState => {
  const member = newMember(joiningPlayer, now, joinDeadline)
  const team = nextTeam(state)
  const admitted = withMember(state, team === undefined ? member : { ...member, team })
  return state.hostId === null && state.members.size === 0
    ? { ...admitted, hostId: joiningPlayer.playerId }
    : admitted
}

/**
 * Whether the room is there for this player: a host is not found by whom it has blocked. Undefined while the
 * blocks of the host are unknown: only the database has them.
 */
export const mayJoin = ({ hostId, members }: RoomState, playerId: string): boolean | undefined => {
  const host = hostId === null ? undefined : members.get(hostId)
  if (host === undefined || members.has(playerId)) return true
  return host.blocks === unknownBlocks ? undefined : reach({ id: playerId }, host, "join")
}

/** Takes a seat, or enters with the seat that the player has. */
export const join = (
  state: RoomState,
  joiningPlayer: JoiningPlayer,
  now: number
): Result.Result<Decision, RoomFull | P2pRoomFull | RoomLocked | RoomNotFound | Unavailable> => {
  const seated = state.members.get(joiningPlayer.playerId)
  if (seated !== undefined) return attach(state, seated, joiningPlayer, now)
  if (isBarred(state, joiningPlayer.playerId, now)) return Result.fail(new RoomNotFound())
  if (mayJoin(state, joiningPlayer.playerId) === false) return Result.fail(new RoomNotFound())
  if (state.locked) return Result.fail(new RoomLocked())
  if (state.members.size >= state.settings.maxPlayers) {
    return Result.fail(state.settings.p2p === null ? new RoomFull() : new P2pRoomFull())
  }
  const [joined, hostEvents] = migrateHost(admit(state, joiningPlayer, now, null), now, "timeout")
  const member = joined.members.get(joiningPlayer.playerId)
  if (member === undefined) return Result.fail(new RoomFull())
  return decided(
    joined,
    [
      toOthers({ t: "player_joined", player: playerView(member, joined.rights) }, member.id),
      ...hostEvents.map((emission) => ({ ...emission, except: member.id })),
      entering(joined, member.id, false)
    ],
    ref(joined)
  )
}

/** Seats players in order while there are free seats; `data.seated` names them. */
export const seat = (
  state: RoomState,
  joiningPlayers: ReadonlyArray<JoiningPlayer>,
  now: number
): Result.Result<Decision, RoomLocked> => {
  if (state.locked || isDeserted(state)) return Result.fail(new RoomLocked())
  let next = state
  const seated: Array<string> = []
  const emissions: Array<Emission> = []
  for (const joiningPlayer of joiningPlayers) {
    const { playerId } = joiningPlayer
    if (next.members.has(playerId) || wasRemoved(state, playerId)) continue
    if (next.members.size >= next.settings.maxPlayers) break
    next = admit(next, joiningPlayer, now, now + roomLimits.joinDeadlineSeconds * seconds)
    seated.push(playerId)
  }
  for (const id of seated) {
    const member = next.members.get(id)
    if (member !== undefined) {
      emissions.push(toOthers({ t: "player_joined", player: playerView(member, next.rights) }, id))
    }
  }
  const [hosted, hostEvents] = migrateHost(next, now, "timeout")
  const events = state.members.size === 0 ? [] : [...emissions, ...hostEvents]
  return decided(hosted, events, { seated, ...ref(hosted) })
}

/** Returns to a seat within the grace. */
export const resume = (
  state: RoomState,
  command: Returning,
  now: number
): Result.Result<Decision, ResumeExpired | Unavailable> => {
  const member = state.members.get(command.playerId)
  if (member === undefined) return Result.fail(new ResumeExpired())
  const isOther = member.attachment?.connectionId !== command.connectionId
  if (isOther && isForgotten(state, member, now)) return Result.fail(new ResumeExpired())
  return Result.map(attach(state, member, command, now), (decision) => ({
    ...decision,
    emissions: decision.emissions.map((emission) =>
      emission.event.t === "room_joined"
        ? { ...emission, event: { ...emission.event, resumed: true } }
        : emission
    )
  }))
}

const without = (state: RoomState, playerId: string): RoomState => {
  const members = new Map(state.members)
  members.delete(playerId)
  return {
    ...state,
    members,
    hostId: state.hostId === playerId ? null : state.hostId,
    closed: members.size === 0 ? "empty" : state.closed
  }
}

/** Frees a seat. Closes the room after the last member; migrates the host if the host leaves. */
export const remove = (state: RoomState, member: Member, reason: LeaveReason): Decision => {
  const remaining = without(state, member.id)
  const event: RoomEvent = { t: "player_left", playerId: member.id, reason }
  const isKnown = reason === "left" || reason === "timeout"
  const emissions: Array<Emission> = [
    // The connection of a banned player may stay: its node may learn of the ban when that has been lifted.
    // That of a kicked player stays; a client of release 0.1 knows only this event.
    ...(isKnown ? [] : [{ event, to: [member.id], except: null, membership: null } as const]),
    { event, to: null, except: member.id, membership: "exit" }
  ]
  if (state.hostId !== member.id) return { state: remaining, emissions, data: {} }
  const next = earliestConnected(remaining)
  if (next === undefined) return { state: remaining, emissions, data: {} }
  return {
    state: { ...remaining, hostId: next.id },
    emissions: [...emissions, toOthers(hostEvent(next.id, member.id, reason), member.id)],
    data: {}
  }
}

/** Removes the player. Fails for an older connection than the one that holds the seat. */
export const leave = (
  state: RoomState,
  member: Member,
  command: { readonly reason: LeaveReason; readonly connectionId?: string }
): Result.Result<Decision, NotInRoom> =>
  command.connectionId !== undefined &&
  member.attachment !== null &&
  member.attachment.connectionId > command.connectionId
    ? Result.fail(new NotInRoom())
    : Result.succeed(remove(state, member, command.reason))

/** Frees the seats of matched players who have not arrived in time: the next ticket may have them. */
const freeSeatsOfMissing = (state: RoomState, now: number): Decision => {
  const missing = Array.from(state.members.values()).filter(
    ({ arrived, joinDeadline }) => !arrived && joinDeadline !== null && now >= joinDeadline
  )
  // The host last, so that the role passes to none of the others.
  missing.sort((a, b) => Number(a.id === state.hostId) - Number(b.id === state.hostId))
  let next = state
  const emissions: Array<Emission> = []
  for (const member of missing) {
    const decision = remove(next, member, "timeout")
    next = decision.state
    emissions.push(...decision.emissions)
  }
  return { state: next, emissions, data: {} }
}

/** Applies what is due: announcements, ended graces, host migration, the end of the room. */
export const tick = (state: RoomState, now: number): Result.Result<Decision, never> => {
  if (state.closed !== null) return decided(state)
  if (now >= roomEnd(state)) {
    return decided({ ...state, closed: "idle", members: new Map(), hostId: null }, [
      toAll({ t: "room_closed", roomId: state.settings.id, reason: "idle" })
    ])
  }
  const freed = freeSeatsOfMissing(state, now)
  const entered = expireJoinDeadlines(freed.state, now)
  const announced = announce(entered.state, now)
  const emissions = [...freed.emissions, ...entered.emissions, ...announced.emissions]
  let next = announced.state
  for (const member of next.members.values()) {
    const until = graceEndOf(next, member, now)
    if (until === null || now < until) continue
    const decision = remove(next, member, "timeout")
    next = decision.state
    emissions.push(...decision.emissions)
  }
  const [hosted, hostEvents] = migrateHost(next, now, "timeout")
  return decided(hosted, [...emissions, ...hostEvents])
}

const roomEnd = (state: RoomState): number =>
  Math.min(
    state.lastFrameAt + roomLimits.idleSeconds * seconds,
    state.settings.createdAt + roomLimits.lifetimeSeconds * seconds
  )

/** Time of the next deadline that `tick` handles, Unix milliseconds. */
export const nextDeadline = (state: RoomState): number => {
  let due = Math.min(roomEnd(state), state.rights.vote?.endsAt ?? Number.POSITIVE_INFINITY)
  for (const member of state.members.values()) {
    const until = graceDeadlineOf(state, member)
    if (member.joinDeadline !== null) due = Math.min(due, member.joinDeadline)
    if (until === null) continue
    due = Math.min(due, until)
    if (!member.announced) due = Math.min(due, member.announceAt ?? until)
    if (member.id === state.hostId && earliestConnected(state) !== undefined) {
      due = Math.min(due, hostUntil(state, member) ?? until)
    }
  }
  return due
}
