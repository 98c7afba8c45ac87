/** Error codes of players. */
import { coded } from "./wire.ts"

/** The player does not exist in this environment. Sign in again, or check the id. */
export class PlayerNotFound extends coded<PlayerNotFound>()(
  "player_not_found",
  404,
  "There is no such player."
) {}

/** The player has blocked as many others as possible. End a block first. */
export class TooManyBlocks extends coded<TooManyBlocks>()(
  "too_many_blocks",
  409,
  "You have blocked too many players."
) {}

/** A player can only make the age band stricter. The operator can set any. */
export class AgeChangeNotAllowed extends coded<AgeChangeNotAllowed>()(
  "age_change_not_allowed",
  403,
  "A player can only make the age band stricter."
) {}
