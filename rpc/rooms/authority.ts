/** Frames and events of rights in rooms: moderation by the host, votes and teams. */
import { Schema } from "effect"
import { VoteOp } from "../config-document/authority.ts"
import {
  HostOnly,
  NotInRoom,
  NotPermitted,
  PlayerNotInRoom,
  TeamFull,
  VoteCooldown,
  VoteNotFound,
  VoteRunning
} from "../errors/codes.ts"
import { Done, event, frame } from "../frames.ts"
import { configLimits } from "../config-document/limits.ts"
import { Timestamp } from "../text.ts"
import { roomLimits } from "./limits.ts"

const PlayerRef = Schema.String.check(Schema.isBetweenLength(1, 64))
const TeamRef = Schema.String.check(Schema.isBetweenLength(1, configLimits.keyMaxCharacters))

/** What the host, or a server, does to a player of a room. */
export const RoomModerateOp = Schema.Literals([
  "kick",
  "ban",
  "unban",
  "host",
  "team",
  "mute",
  "unmute"
])
export type RoomModerateOp = typeof RoomModerateOp.Type

/** Fields of a moderation; `reason` is a key of the game, which the removed player receives as `cause`. */
export const roomModerationFields = {
  op: RoomModerateOp,
  playerId: PlayerRef,
  team: Schema.optionalKey(TeamRef),
  reason: Schema.optionalKey(
    Schema.String.annotate({ examples: ["afk"] }).check(
      Schema.isBetweenLength(1, roomLimits.moderationReasonMaxCharacters),
      Schema.isPattern(/^[a-z][a-z0-9_]*$/u, { message: "Expected lowercase snake_case" })
    )
  )
}

const teamProblem = ({ op, team }: { readonly op: RoomModerateOp; readonly team?: string }) =>
  (op === "team") === (team !== undefined) ? undefined : 'Give team with op "team", and only then'

/** Moderates a player of the room: removes or mutes it, moves it to a team, or makes it the host. */
export const roomModerate = frame(
  "roomModerate",
  "Remove, mute or move a player, or pass on the host",
  {
    payload: Schema.Struct(roomModerationFields).check(Schema.makeFilter(teamProblem)),
    success: Done,
    errors: [NotInRoom, HostOnly, NotPermitted, PlayerNotInRoom, TeamFull]
  }
)

interface VoteFields {
  readonly op?: VoteOp
  readonly playerId?: string
  readonly voteId?: string
  readonly yes?: boolean
}

const voteProblem = ({ op, playerId, voteId, yes }: VoteFields): string | undefined => {
  const isStart = op !== undefined && voteId === undefined && yes === undefined
  const isBallot =
    op === undefined && playerId === undefined && voteId !== undefined && yes !== undefined
  if (isBallot) return undefined
  if (!isStart) return "Give op to start a vote, or voteId and yes to vote"
  return (op === "kick") === (playerId !== undefined)
    ? undefined
    : 'Give playerId with op "kick", and only then'
}

/** Starts a vote (`op`), or votes (`voteId`, `yes`). */
export const vote = frame("vote", "Start a vote, or vote", {
  payload: Schema.Struct({
    op: Schema.optionalKey(VoteOp),
    playerId: Schema.optionalKey(PlayerRef),
    voteId: Schema.optionalKey(Schema.String.check(Schema.isBetweenLength(1, 64))),
    yes: Schema.optionalKey(Schema.Boolean)
  }).check(Schema.makeFilter(voteProblem)),
  success: Schema.Struct({ voteId: Schema.String }),
  errors: [NotInRoom, NotPermitted, PlayerNotInRoom, VoteRunning, VoteCooldown, VoteNotFound]
})

/** Changes the player's own team. */
export const setTeam = frame("setTeam", "Change to another team", {
  payload: { team: TeamRef },
  success: Done,
  errors: [NotInRoom, NotPermitted, TeamFull]
})

/** A team, and its players in the order in which they joined the room. */
export const RoomTeam = Schema.Struct({
  key: Schema.String,
  players: Schema.Array(Schema.String)
})
export type RoomTeam = typeof RoomTeam.Type

const voteFields = {
  voteId: Schema.String,
  op: VoteOp,
  playerId: Schema.optionalKey(Schema.String),
  yes: Schema.Int,
  no: Schema.Int,
  needed: Schema.Int,
  endsAt: Timestamp
}

/** A vote that is open. `needed` is the number of yes that passes it. */
export const OpenVote = Schema.Struct(voteFields)
export type OpenVote = typeof OpenVote.Type

export const VoteResult = Schema.Literals(["open", "passed", "failed", "cancelled"])
export type VoteResult = typeof VoteResult.Type

export const RemovedReason = Schema.Literals(["kicked", "banned", "voted"])
export type RemovedReason = typeof RemovedReason.Type

/** Events of rights in a room. */
export const authorityEvents = [
  event("removed", {
    roomId: Schema.String,
    reason: RemovedReason,
    /** End of the bar against the player; null for the room's life. */
    until: Schema.NullOr(Timestamp),
    cause: Schema.optionalKey(Schema.String)
  }),
  event("vote", { ...voteFields, state: VoteResult }),
  event("muted", { playerId: Schema.String, muted: Schema.Boolean }),
  event("teams", { teams: Schema.Array(RoomTeam), version: Schema.Int })
] as const
