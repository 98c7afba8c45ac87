/**
 * Room state machine, pure: `(state, command, now) => Result<Decision, error>`.
 *
 * Invariants: a player has at most one seat; members never exceed `maxPlayers`; no command both adds
 * and removes members; the host is a member or null; a member is connected (`attachment` set) or in its
 * grace (`absence` set); no barred player takes a seat; a team never exceeds its slots; a vote ends once;
 * events are emitted in the order of the changes.
 */
import { Result } from "effect"
import { HostOnly, NotInRoom, type StateTooLarge } from "#rpc/errors/codes"
import type { CloseReason, RoomEvent } from "#rpc/rooms/events"
import { roomLimits } from "#rpc/rooms/limits"
import {
  type Decision,
  decided,
  type Member,
  nameChange,
  type RoomCommand,
  type RoomError,
  type RoomState,
  toAll,
  withMember
} from "./model.ts"
import { disconnect, drop, expect } from "./absences.ts"
import { blocksFrom } from "../reach.ts"
import { deliveries, recipients } from "./delivery.ts"
import { join, leave, resume, seat, tick } from "./seats.ts"
import { iceTransport, signal } from "./signal.ts"
import { patchJsonState } from "./json-state.ts"
import { moderate } from "./moderation.ts"
import { announceTeams, setTeam } from "./teams.ts"
import { castVote, settleVote, startVote } from "./votes.ts"

const send = (
  state: RoomState,
  sender: Member,
  command: Extract<RoomCommand, { t: "send" }>,
  now: number
): Result.Result<Decision, never> => {
  const event: RoomEvent = {
    t: "message",
    from: sender.id,
    type: command.type,
    ...("data" in command ? { data: command.data } : {}),
    at: now
  }
  const receivers = recipients(state, sender, command)
  const { delivered } = receivers
  const emissions = deliveries(event, sender, receivers)
  return decided(state, emissions, command.to === undefined ? {} : { delivered })
}

const setState = (
  state: RoomState,
  command: Extract<RoomCommand, { t: "setState" }>
): Result.Result<Decision, HostOnly | StateTooLarge> => {
  if (state.settings.hostOnlyState && state.hostId !== command.playerId) {
    return Result.fail(new HostOnly())
  }
  return Result.map(
    patchJsonState(state.sharedState, command.patch, roomLimits.stateMaxBytes),
    (sharedState) => {
      const version = state.version + 1
      return {
        state: { ...state, sharedState, version },
        emissions: [toAll({ t: "state", patch: command.patch, from: command.playerId, version })],
        data: {}
      }
    }
  )
}

const setMyState = (
  state: RoomState,
  member: Member,
  command: Extract<RoomCommand, { t: "setMyState" }>
): Result.Result<Decision, StateTooLarge> =>
  Result.map(
    patchJsonState(member.playerState, command.patch, roomLimits.playerStateMaxBytes),
    (playerState) => ({
      state: withMember(state, { ...member, playerState }),
      emissions: [toAll({ t: "player_state", playerId: member.id, patch: command.patch })],
      data: {}
    })
  )

const lock = (
  state: RoomState,
  command: Extract<RoomCommand, { t: "lock" }>
): Result.Result<Decision, HostOnly> => {
  if (state.hostId !== command.playerId) return Result.fail(new HostOnly())
  if (state.locked === command.locked) return decided(state)
  return decided({ ...state, locked: command.locked }, [
    toAll({ t: "locked", locked: command.locked })
  ])
}

const close = (state: RoomState, reason: CloseReason): Result.Result<Decision, never> =>
  decided({ ...state, closed: reason, members: new Map(), hostId: null }, [
    toAll({ t: "room_closed", roomId: state.settings.id, reason })
  ])

const rename = (
  state: RoomState,
  { displayName, playerId }: Omit<Extract<RoomCommand, { t: "rename" }>, "t">
): Result.Result<Decision, never> => {
  const member = state.members.get(playerId)
  if (member === undefined || member.displayName === displayName) return decided(state)
  const events = nameChange(member, displayName)
  return decided(withMember(state, { ...member, displayName }), events.map(toAll))
}

const block = (
  state: RoomState,
  { blocks, playerId }: Extract<RoomCommand, { t: "block" }>
): Result.Result<Decision, never> => {
  const member = state.members.get(playerId)
  return decided(
    member === undefined ? state : withMember(state, { ...member, blocks: blocksFrom(blocks) })
  )
}

const lastFrameResolution = 60_000

/** Records activity to the minute: most messages then leave the state, and its snapshot, unchanged. */
const touched = (state: RoomState, now: number): RoomState =>
  now - state.lastFrameAt < lastFrameResolution ? state : { ...state, lastFrameAt: now }

const decideCommand = (
  before: RoomState,
  command: RoomCommand,
  now: number
): Result.Result<Decision, RoomError> => {
  switch (command.t) {
    case "join":
      return join(touched(before, now), command, now)
    case "resume":
      return resume(touched(before, now), command, now)
    case "seat":
      return seat(before, command.joiningPlayers, now)
    case "disconnect":
      return disconnect(before, command, now)
    case "rename":
      return rename(before, command)
    case "block":
      return block(before, command)
    case "dropNode":
      return drop(before, command.node, now)
    case "expect":
      return expect(before, command.node, now)
    case "close":
      return close(before, command.reason)
    case "tick":
      return tick(before, now)
    case "moderate":
      return moderate(touched(before, now), command, now)
  }
  const state = touched(before, now)
  const member = state.members.get(command.playerId)
  if (member === undefined) return Result.fail(new NotInRoom())
  switch (command.t) {
    case "leave":
      return leave(state, member, command)
    case "send":
      return send(state, member, command, now)
    case "setState":
      return setState(state, command)
    case "setMyState":
      return setMyState(state, member, command)
    case "lock":
      return lock(state, command)
    case "startVote":
      return startVote(state, member, command, now)
    case "castVote":
      return castVote(state, member, command, now)
    case "setTeam":
      return setTeam(state, member, command.team)
    case "signal":
      return signal(state, member, command)
    case "iceTransport":
      return iceTransport(state, member)
    case "relay": {
      const { displayName = member.displayName, playerId, relayOnly } = command
      const blocks = command.blocks === undefined ? member.blocks : blocksFrom(command.blocks)
      return rename(withMember(state, { ...member, relayOnly, blocks }), { playerId, displayName })
    }
  }
}

/** Decides a command, and what follows from its change. */
export const decide = (
  before: RoomState,
  command: RoomCommand,
  now: number
): Result.Result<Decision, RoomError> =>
  Result.map(decideCommand(before, command, now), (decision) =>
    announceTeams(before, settleVote(before, decision, now))
  )
