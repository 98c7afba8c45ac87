/**
 * Teams of a room. In a mode with teams every member has a team, and keeps it while it is absent. Pure;
 * part of the room's state machine.
 */
import { Result } from "effect"
import { InvalidFrame, NotPermitted, TeamFull } from "#rpc/errors/codes"
import {
  type Decision,
  decided,
  type Emission,
  type Member,
  type RoomState,
  teamsView,
  toAll,
  toOthers,
  withMember
} from "./model.ts"
import type { TeamSlots } from "./rights.ts"

const sizesOf = ({ members }: RoomState): Map<string | undefined, number> => {
  const sizes = new Map<string | undefined, number>()
  for (const { team } of members.values()) sizes.set(team, (sizes.get(team) ?? 0) + 1)
  return sizes
}

/**
 * The team of the next player, undefined in a room without teams: one below its minimum if there is any,
 * and of these the smallest; among equals, the first. The wanted team, if it has a free slot.
 */
export const nextTeam = (state: RoomState, wanted?: string): string | undefined => {
  const { teams } = state.settings
  if (teams === undefined) return undefined
  const sizes = sizesOf(state)
  const sizeOf = ({ key }: TeamSlots): number => sizes.get(key) ?? 0
  const free = teams.filter((team) => sizeOf(team) < team.max)
  const lacking = free.filter((team) => sizeOf(team) < team.min)
  const candidates = lacking.length > 0 ? lacking : free
  let best: TeamSlots | undefined
  for (const team of candidates) {
    if (best === undefined || sizeOf(team) < sizeOf(best)) best = team
  }
  return free.find(({ key }) => key === wanted)?.key ?? best?.key
}

/** Moves a member to a team with a free slot. */
export const moveToTeam = (
  state: RoomState,
  member: Member,
  key: string
): Result.Result<Decision, InvalidFrame | NotPermitted | TeamFull> => {
  const { teams } = state.settings
  if (teams === undefined) return Result.fail(new NotPermitted())
  const team = teams.find((each) => each.key === key)
  if (team === undefined) {
    const keys = teams.map((each) => each.key).join(", ")
    return Result.fail(InvalidFrame.at("team", `Expected one of ${keys}`))
  }
  if (member.team === key) return decided(state)
  if ((sizesOf(state).get(key) ?? 0) >= team.max) return Result.fail(new TeamFull())
  return decided(withMember(state, { ...member, team: key }))
}

/** Changes the own team, where players choose it and the room is not locked. */
export const setTeam = (
  state: RoomState,
  member: Member,
  team: string
): Result.Result<Decision, InvalidFrame | NotPermitted | TeamFull> =>
  state.settings.freeTeams === true && !state.locked
    ? moveToTeam(state, member, team)
    : Result.fail(new NotPermitted())

const haveSameTeams = (before: RoomState, after: RoomState): boolean => {
  if (before.members.size !== after.members.size) return false
  for (const [id, { team }] of after.members) {
    const earlier = before.members.get(id)
    if (earlier === undefined || earlier.team !== team) return false
  }
  return true
}

/**
 * Appends the event of changed teams to a decision. The player who enters with it has the teams from its
 * snapshot.
 */
export const announceTeams = (before: RoomState, decision: Decision): Decision => {
  const { emissions, state } = decision
  if (state.settings.teams === undefined || state.members === before.members) return decision
  if (state.closed !== null || haveSameTeams(before, state)) return decision
  const version = state.teamsVersion + 1
  const entering = emissions.find(({ membership }) => membership === "enter")?.to?.[0]
  const event = { t: "teams", teams: teamsView(state) ?? [], version } as const
  const emission: Emission = entering === undefined ? toAll(event) : toOthers(event, entering)
  return {
    ...decision,
    state: { ...state, teamsVersion: version },
    emissions: [...emissions, emission]
  }
}
