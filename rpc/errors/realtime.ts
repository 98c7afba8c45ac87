/** Error codes of the realtime socket: frames, rooms, matchmaking (spec section 4.4). */
import { Schema } from "effect"
import { coded, detailed } from "./wire.ts"
import { Issue } from "./requests.ts"

/** The frame is not a JSON object with the fields its `t` takes. */
export class InvalidFrame extends detailed<InvalidFrame>()(
  "invalid_frame",
  400,
  "The frame is not valid.",
  { issues: Schema.Array(Issue) }
) {}

/** No frame has this `t`. */
export class UnknownType extends coded<UnknownType>()(
  "unknown_type",
  400,
  "No frame has this type."
) {}

/** The frame needs a player; this connection has none. */
export class PlayerRequired extends coded<PlayerRequired>()(
  "player_required",
  403,
  "This needs a signed-in player."
) {}

/** No such room, or one of another environment. */
export class RoomNotFound extends coded<RoomNotFound>()(
  "room_not_found",
  404,
  "There is no such room."
) {}

/** Every seat is taken. */
export class RoomFull extends coded<RoomFull>()("room_full", 409, "The room is full.") {}

/** The peer-to-peer mesh has no free place. */
export class P2pRoomFull extends coded<P2pRoomFull>()(
  "p2p_room_full",
  409,
  "The peer-to-peer room is full."
) {}

/** The host has locked the room. */
export class RoomLocked extends coded<RoomLocked>()("room_locked", 409, "The room is locked.") {}

/** The player has a seat elsewhere; leave it first. */
export class AlreadyInRoom extends detailed<AlreadyInRoom>()(
  "already_in_room",
  409,
  "This player already has a seat in a room.",
  { roomId: Schema.String }
) {}

/** The connection is in no room. */
export class NotInRoom extends coded<NotInRoom>()("not_in_room", 409, "Join a room first.") {}

/** The player already has a matchmaking ticket. */
export class AlreadyMatching extends coded<AlreadyMatching>()(
  "already_matching",
  409,
  "This player is already waiting for a match."
) {}

/** The player has no matchmaking ticket. */
export class NotMatching extends coded<NotMatching>()(
  "not_matching",
  409,
  "This player is not waiting for a match."
) {}

/** Only the room's host may do this. */
export class HostOnly extends coded<HostOnly>()("host_only", 403, "Only the host may do this.") {}

/** The environment's config has no such mode. */
export class ModeNotFound extends coded<ModeNotFound>()(
  "mode_not_found",
  400,
  "There is no such multiplayer mode."
) {}

/** A live room of this environment has this code. */
export class CodeTaken extends coded<CodeTaken>()(
  "code_taken",
  409,
  "Another room has this code."
) {}

/** The player named has no seat in the room. */
export class PlayerNotInRoom extends coded<PlayerNotInRoom>()(
  "player_not_in_room",
  404,
  "That player is not in the room."
) {}

/** The room is not a peer-to-peer room. */
export class P2pOnly extends coded<P2pOnly>()(
  "p2p_only",
  409,
  "Only peer-to-peer rooms have this."
) {}

/** This player's connections have to be relayed, and no TURN server is configured. */
export class TurnUnavailable extends coded<TurnUnavailable>()(
  "turn_unavailable",
  503,
  "No relay (TURN) server is configured: set SVC_TURN_URLS and SVC_TURN_SECRET."
) {}

/** The patch would take the state past its limits; nothing was applied. */
export class StateTooLarge extends detailed<StateTooLarge>()(
  "state_too_large",
  413,
  "The state would become too large.",
  { limit: Schema.Finite, unit: Schema.Literals(["bytes", "keys", "keyCharacters", "depth"]) }
) {}

/** The ticket was cancelled: by `cancelMatch`, `leave`, a drop, or a change of the config. */
export class MatchCancelled extends coded<MatchCancelled>()(
  "match_cancelled",
  409,
  "The matchmaking ticket was cancelled."
) {}

/** The seat is no longer kept: the grace has passed, or it never was in this room. */
export class ResumeExpired extends coded<ResumeExpired>()(
  "resume_expired",
  409,
  "The seat is no longer kept."
) {}
