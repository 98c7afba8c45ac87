/** Error codes of the realtime socket: frames, rooms and matchmaking. */
import { Schema } from "effect"
import { coded, detailed } from "./wire.ts"
import { Issue } from "./requests.ts"

/** The frame is not a JSON object with the fields of its `t`. Correct the fields in `issues`. */
export class InvalidFrame extends detailed<InvalidFrame>()(
  "invalid_frame",
  400,
  "The frame is not valid.",
  { issues: Schema.Array(Issue) }
) {
  /** The error of one field: the message says what to fix. */
  static at(path: string, message: string): InvalidFrame {
    return new InvalidFrame({ message, details: { issues: [{ path, message }] } })
  }
}

/** The `t` of the frame names no frame. Check its spelling. */
export class UnknownType extends coded<UnknownType>()(
  "unknown_type",
  400,
  "No frame has this type."
) {}

/** The frame needs a player, and this connection is anonymous. Sign in and reconnect. */
export class PlayerRequired extends coded<PlayerRequired>()(
  "player_required",
  403,
  "This needs a signed-in player."
) {}

/** The environment has no such room. It may have closed; list rooms again. */
export class RoomNotFound extends coded<RoomNotFound>()(
  "room_not_found",
  404,
  "There is no such room."
) {}

/** The room has no free seat. Join another room. */
export class RoomFull extends coded<RoomFull>()("room_full", 409, "The room is full.") {}

/** The peer-to-peer room has no free seat. Join another room. */
export class P2pRoomFull extends coded<P2pRoomFull>()(
  "p2p_room_full",
  409,
  "The peer-to-peer room is full."
) {}

/** The host has locked the room. Join another room. */
export class RoomLocked extends coded<RoomLocked>()("room_locked", 409, "The room is locked.") {}

/** The player has a seat in another room. Leave or resume it first. */
export class AlreadyInRoom extends detailed<AlreadyInRoom>()(
  "already_in_room",
  409,
  "This player already has a seat in a room.",
  { roomId: Schema.String }
) {}

/** The connection is in no room. Join one first. */
export class NotInRoom extends coded<NotInRoom>()("not_in_room", 409, "Join a room first.") {}

/** The player already has a matchmaking ticket. Wait for its match, or cancel it. */
export class AlreadyMatching extends coded<AlreadyMatching>()(
  "already_matching",
  409,
  "This player is already waiting for a match."
) {}

/** The player has no matchmaking ticket, so there is nothing to cancel. */
export class NotMatching extends coded<NotMatching>()(
  "not_matching",
  409,
  "This player is not waiting for a match."
) {}

/** Only the room's host may do this. */
export class HostOnly extends coded<HostOnly>()("host_only", 403, "Only the host may do this.") {}

/** The environment's config has no such mode. Read the modes from the definitions. */
export class ModeNotFound extends coded<ModeNotFound>()(
  "mode_not_found",
  400,
  "There is no such multiplayer mode."
) {}

/** An open room of this environment has this code. Choose another code. */
export class CodeTaken extends coded<CodeTaken>()(
  "code_taken",
  409,
  "Another room has this code."
) {}

/** The named player has no seat in the room. */
export class PlayerNotInRoom extends coded<PlayerNotInRoom>()(
  "player_not_in_room",
  404,
  "That player is not in the room."
) {}

/** The room is not peer-to-peer. Use messages instead. */
export class P2pOnly extends coded<P2pOnly>()(
  "p2p_only",
  409,
  "This works only in peer-to-peer rooms."
) {}

/**
 * This player's connections must be relayed, and the deployment has no TURN server. The operator sets
 * `SVC_TURN_URLS` and `SVC_TURN_SECRET`.
 */
export class TurnUnavailable extends coded<TurnUnavailable>()(
  "turn_unavailable",
  503,
  "No relay (TURN) server is configured: set SVC_TURN_URLS and SVC_TURN_SECRET."
) {}

/** The patch would exceed a limit of the state, and nothing was applied. Store less. */
export class StateTooLarge extends detailed<StateTooLarge>()(
  "state_too_large",
  413,
  "The state would become too large.",
  { limit: Schema.Finite, unit: Schema.Literals(["bytes", "keys", "keyCharacters", "depth"]) }
) {}

/** The ticket was cancelled: by `cancelMatch`, `leave`, a disconnect, or a config change. Start again. */
export class MatchCancelled extends coded<MatchCancelled>()(
  "match_cancelled",
  409,
  "The matchmaking ticket was cancelled."
) {}

/** The seat is no longer reserved, or the player never had one in this room. Join again. */
export class ResumeExpired extends coded<ResumeExpired>()(
  "resume_expired",
  409,
  "The seat is no longer reserved."
) {}

/** The room's mode does not give this right. Read `authority` and `assign` from the definitions. */
export class NotPermitted extends coded<NotPermitted>()(
  "not_permitted",
  403,
  "The room's mode does not permit this."
) {}

/** The team has no free slot. Choose another team. */
export class TeamFull extends coded<TeamFull>()("team_full", 409, "The team is full.") {}

/** One vote is open in a room at a time. Wait for its end. */
export class VoteRunning extends coded<VoteRunning>()(
  "vote_running",
  409,
  "Another vote is open in this room."
) {}

/** The starter or the target of this vote rests from the last one. Start it later. */
export class VoteCooldown extends detailed<VoteCooldown>()(
  "vote_cooldown",
  409,
  "It is too early for another vote.",
  { retryAfterSeconds: Schema.Int }
) {}

/** The vote has ended, or there was none of this id. */
export class VoteNotFound extends coded<VoteNotFound>()(
  "vote_not_found",
  404,
  "No such vote is open in this room."
) {}
