/**
 * Votes in a room, one at a time. The voters are fixed when it starts. {@link settleVote} ends each vote
 * once, after whatever command has decided it. Pure; part of the room's state machine.
 */
import { Result } from "effect"
import type { VoteOp } from "#rpc/config-document/authority"
import {
  InvalidFrame,
  NotPermitted,
  PlayerNotInRoom,
  VoteCooldown,
  VoteNotFound,
  VoteRunning
} from "#rpc/errors/codes"
import { configLimits } from "#rpc/config-document/limits"
import { roomLimits } from "#rpc/rooms/limits"
import type { VoteResult } from "#rpc/rooms/authority"
import {
  type Decision,
  decided,
  isReachable,
  type Member,
  type RoomState,
  toAll,
  voteView
} from "./model.ts"
import { removeAndBar } from "./removal.ts"
import type { Rights, Vote, VoteRest, VoteRule } from "./rights.ts"

const seconds = 1000

/** The smallest difference of two numbers of votes; what is less is an error of rounding. */
const epsilon = 1e-9

/** The number of yes that passes a vote: one voter alone never decides. */
const neededOf = ({ share }: VoteRule, voters: number): number =>
  Math.max(configLimits.voteVotersMin, Math.ceil(share * voters - epsilon))

/** End of the rest that forbids this vote, Unix milliseconds; undefined if none does. */
const restOf = (
  { rests }: Rights,
  op: VoteOp,
  starterId: string,
  targetId: string | null,
  now: number
): number | undefined => {
  const ends = rests.flatMap((rest) => {
    const concerns =
      rest.starterId === starterId || (rest.targetId !== null && rest.targetId === targetId)
    return rest.op === op && concerns && now < rest.until ? [rest.until] : []
  })
  return ends.length === 0 ? undefined : Math.max(...ends)
}

const targetOf = (
  state: RoomState,
  { id }: Member,
  playerId: string | undefined
): Result.Result<string | null, InvalidFrame | PlayerNotInRoom> => {
  if (playerId === undefined) return Result.succeed(null)
  if (playerId === id) return Result.fail(InvalidFrame.at("playerId", "Expected another player"))
  return state.members.has(playerId) ? Result.succeed(playerId) : Result.fail(new PlayerNotInRoom())
}

interface StartVote {
  readonly op: VoteOp
  readonly target?: string
}

type StartError = InvalidFrame | NotPermitted | PlayerNotInRoom | VoteCooldown | VoteRunning

/** Returns the voters of a new vote: its starter, and all others who are here, without the target. */
const votersOf = (
  { members }: RoomState,
  starter: Member,
  targetId: string | null
): ReadonlyArray<Member> =>
  Array.from(members.values()).filter(
    (member) => member.id === starter.id || (member.id !== targetId && isReachable(member))
  )

/** Opens a vote, with the yes of its starter. */
const openVote = (
  { rights, ...state }: RoomState,
  voters: ReadonlyArray<Member>,
  rule: VoteRule,
  { op, starterId, targetId }: Pick<Vote, "op" | "starterId" | "targetId">,
  now: number
): Result.Result<Decision, never> => {
  const votesHeld = rights.votesHeld + 1
  const vote: Vote = {
    // The time as well: a room that lost its last second counts from before.
    id: `${now.toString(36)}_${votesHeld}`,
    op,
    starterId,
    targetId,
    ballots: new Map(voters.map(({ id }) => [id, id === starterId ? true : null])),
    needed: neededOf(rule, voters.length),
    endsAt: now + rule.seconds * seconds,
    restMillis: rule.cooldownSeconds * seconds
  }
  return decided({ ...state, rights: { ...rights, vote, votesHeld } }, [], { voteId: vote.id })
}

/** Starts a vote. */
export const startVote = (
  state: RoomState,
  starter: Member,
  { op, target }: StartVote,
  now: number
): Result.Result<Decision, StartError> => {
  const rule = state.settings.votes?.find((each) => each.op === op)
  if (rule === undefined) return Result.fail(new NotPermitted())
  if (state.rights.vote !== null) return Result.fail(new VoteRunning())
  const found = targetOf(state, starter, target)
  if (Result.isFailure(found)) return Result.fail(found.failure)
  const targetId = found.success
  const until = restOf(state.rights, op, starter.id, targetId, now)
  if (until !== undefined) {
    const retryAfterSeconds = Math.ceil((until - now) / seconds)
    return Result.fail(new VoteCooldown({ details: { retryAfterSeconds } }))
  }
  const voters = votersOf(state, starter, targetId)
  if (voters.length < rule.minVoters) {
    const message = `This vote needs at least ${rule.minVoters} voters.`
    return Result.fail(new NotPermitted({ message }))
  }
  return openVote(state, voters, rule, { op, starterId: starter.id, targetId }, now)
}

interface Ballot {
  readonly voteId: string
  readonly yes: boolean
}

/** Votes in the open vote, once. */
export const castVote = (
  state: RoomState,
  member: Member,
  { voteId, yes }: Ballot,
  now: number
): Result.Result<Decision, NotPermitted | VoteNotFound> => {
  const { vote } = state.rights
  if (vote === null || vote.id !== voteId || now >= vote.endsAt) {
    return Result.fail(new VoteNotFound())
  }
  const earlier = vote.ballots.get(member.id)
  if (earlier === undefined) {
    return Result.fail(new NotPermitted({ message: "You are not a voter of this vote." }))
  }
  if (earlier === yes) return decided(state, [], { voteId })
  if (earlier !== null) return Result.fail(new NotPermitted({ message: "You have voted." }))
  const ballots = new Map(vote.ballots).set(member.id, yes)
  const rights = { ...state.rights, vote: { ...vote, ballots } }
  return decided({ ...state, rights }, [], { voteId })
}

const resultOf = ({ members }: RoomState, vote: Vote, now: number): VoteResult => {
  const isGone = (id: string | null): boolean => id !== null && !members.has(id)
  if (isGone(vote.targetId) || isGone(vote.starterId)) return "cancelled"
  const { yes } = voteView(vote)
  if (yes >= vote.needed) return "passed"
  if (now >= vote.endsAt) return "failed"
  const undecided = Array.from(vote.ballots).filter(
    ([id, ballot]) => ballot === null && members.has(id)
  )
  return yes + undecided.length < vote.needed ? "failed" : "open"
}

/**
 * The rest after a vote. Its starter rests from the next, so that one player cannot keep the room voting;
 * the target only of a vote that failed: else leaving for a moment would protect a player.
 */
const restAfter = (
  vote: Vote,
  { members }: RoomState,
  result: VoteResult,
  now: number
): VoteRest => ({
  op: vote.op,
  starterId: vote.starterId,
  targetId:
    result === "failed" && vote.targetId !== null && members.has(vote.targetId)
      ? vote.targetId
      : null,
  until: now + vote.restMillis
})

/** Ends that a new rest keeps: those to come, within the bound. */
const withRest = (rests: ReadonlyArray<VoteRest>, rest: VoteRest, now: number) =>
  [...rests.filter(({ until }) => now < until), rest]
    .toSorted((a, b) => b.until - a.until)
    .slice(0, roomLimits.voteRestsMax)

const endVote = (state: RoomState, vote: Vote, result: VoteResult, now: number): RoomState => {
  const { rests } = state.rights
  const isDodged = result === "cancelled" && state.members.has(vote.starterId)
  const next = isDodged ? rests : withRest(rests, restAfter(vote, state, result, now), now)
  return { ...state, rights: { ...state.rights, vote: null, rests: next } }
}

/**
 * Announces a change of the open vote, and ends it when it is decided. A player who is voted out leaves in
 * the same step.
 */
export const settleVote = (before: RoomState, decision: Decision, now: number): Decision => {
  const { state } = decision
  const { vote } = state.rights
  if (vote === null || state.closed !== null) return decision
  const result = resultOf(state, vote, now)
  if (result === "open" && vote === before.rights.vote) return decision
  const event = toAll({ t: "vote", ...voteView(vote), state: result })
  const emissions = [...decision.emissions, event]
  if (result === "open") return { ...decision, emissions }
  const ended = endVote(state, vote, result, now)
  const target = vote.targetId === null ? undefined : ended.members.get(vote.targetId)
  if (result !== "passed" || vote.op !== "kick" || target === undefined) {
    return { ...decision, state: ended, emissions }
  }
  const removal = removeAndBar(ended, target, { reason: "voted" }, now)
  return { ...decision, state: removal.state, emissions: [...emissions, ...removal.emissions] }
}
