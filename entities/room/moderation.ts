/** What the host, or a server, does to the players of a room. Pure; part of the room's state machine. */
import { Result } from "effect"
import type { HostPower } from "#rpc/config-document/authority"
import {
  HostOnly,
  InvalidFrame,
  NotInRoom,
  NotPermitted,
  PlayerNotInRoom,
  type TeamFull
} from "#rpc/errors/codes"
import { roomLimits } from "#rpc/rooms/limits"
import type { RoomModerateOp } from "#rpc/rooms/authority"
import { withBar, withoutBar } from "./bars.ts"
import {
  type Decision,
  decided,
  type Member,
  type RoomCommand,
  type RoomState,
  toAll
} from "./model.ts"
import { barEnd, removeAndBar } from "./removal.ts"
import type { Rights } from "./rights.ts"
import { moveToTeam } from "./teams.ts"

type Moderate = Extract<RoomCommand, { t: "moderate" }>

type ModerateError = HostOnly | InvalidFrame | NotInRoom | NotPermitted | PlayerNotInRoom | TeamFull

const powerOf: Readonly<Record<RoomModerateOp, HostPower>> = {
  kick: "kick",
  ban: "ban",
  unban: "ban",
  mute: "mute",
  unmute: "mute",
  team: "team",
  host: "transfer"
}

/** Acts that a host does not do to itself. */
const againstOthers: ReadonlySet<RoomModerateOp> = new Set(["kick", "ban", "mute", "unmute"])

/** Why this host may not act; undefined if it may, or if a server acts. */
const refusalOf = (
  { hostId, members, settings }: RoomState,
  { by, op, target }: Moderate
): ModerateError | undefined => {
  if (by === "server") return undefined
  if (!members.has(by.playerId)) return new NotInRoom()
  if (hostId !== by.playerId) return new HostOnly()
  if (settings.powers?.includes(powerOf[op]) !== true) return new NotPermitted()
  return target === by.playerId && againstOthers.has(op)
    ? InvalidFrame.at("playerId", "Expected another player")
    : undefined
}

/** Forgets the first muted player who is not in the room, beyond the bound. */
const withMute = ({ members, rights }: RoomState, playerId: string): Rights => {
  const muted = new Set(rights.muted).add(playerId)
  const absent =
    muted.size > roomLimits.mutesMax ? Array.from(muted).find((id) => !members.has(id)) : undefined
  if (absent !== undefined) muted.delete(absent)
  return { ...rights, muted }
}

const mute = (state: RoomState, { id }: Member): Result.Result<Decision, never> =>
  state.rights.muted.has(id)
    ? decided(state)
    : decided({ ...state, rights: withMute(state, id) }, [
        toAll({ t: "muted", playerId: id, muted: true })
      ])

const unmute = (state: RoomState, playerId: string): Result.Result<Decision, never> => {
  if (!state.rights.muted.has(playerId)) return decided(state)
  const muted = new Set(state.rights.muted)
  muted.delete(playerId)
  const event = toAll({ t: "muted", playerId, muted: false })
  const next = { ...state, rights: { ...state.rights, muted } }
  return decided(next, state.members.has(playerId) ? [event] : [])
}

/** Passes the role of the host on, to a connected member: another would lose it within seconds. */
const transfer = (
  state: RoomState,
  { attachment, id }: Member
): Result.Result<Decision, PlayerNotInRoom> => {
  if (state.hostId === id) return decided(state)
  if (attachment === null) {
    return Result.fail(new PlayerNotInRoom({ message: "That player is not connected." }))
  }
  const event = { hostId: id, previousHostId: state.hostId, reason: "transferred" } as const
  return decided({ ...state, hostId: id }, [toAll({ t: "host_changed", ...event })])
}

const moderateMember = (
  state: RoomState,
  member: Member,
  { op, reason, team }: Moderate,
  now: number
): Result.Result<Decision, ModerateError> => {
  const cause = reason === undefined ? {} : { cause: reason }
  switch (op) {
    case "kick":
      return Result.succeed(removeAndBar(state, member, { reason: "kicked", ...cause }, now))
    case "ban":
      return Result.succeed(removeAndBar(state, member, { reason: "banned", ...cause }, now))
    case "mute":
      return mute(state, member)
    case "host":
      return transfer(state, member)
    case "team":
      return team === undefined
        ? Result.fail(InvalidFrame.at("team", "Expected the key of a team"))
        : moveToTeam(state, member, team)
    case "unban":
      return decided(state)
    case "unmute":
      return unmute(state, member.id)
  }
}

/** Applies an act of the host or of a server. */
export const moderate = (
  state: RoomState,
  command: Moderate,
  now: number
): Result.Result<Decision, ModerateError> => {
  const refusal = refusalOf(state, command)
  if (refusal !== undefined) return Result.fail(refusal)
  const { op, target } = command
  const member = state.members.get(target)
  if (op === "unban") return decided({ ...state, rights: withoutBar(state.rights, target) })
  if (member !== undefined) return moderateMember(state, member, command, now)
  // Who has left meanwhile can be banned, or heard again.
  if (op === "ban") {
    return decided({ ...state, rights: withBar(state.rights, target, barEnd("banned", now)) })
  }
  return op === "unmute" ? unmute(state, target) : Result.fail(new PlayerNotInRoom())
}
