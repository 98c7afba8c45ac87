/** Errors of moderation: appeals, tokens that a server shows (spec sections 4.2 and 4.8). */
import { coded } from "./wire.ts"

/** There is one appeal for each ban. */
export class AlreadyAppealed extends coded<AlreadyAppealed>()(
  "already_appealed",
  409,
  "This ban has been appealed already."
) {}

/** The ban is over: there is nothing to appeal. */
export class SanctionInactive extends coded<SanctionInactive>()(
  "sanction_inactive",
  409,
  "This ban is over."
) {}

/** The appeal was resolved before, by an operator or by the end of the ban. */
export class AlreadyResolved extends coded<AlreadyResolved>()(
  "already_resolved",
  409,
  "This appeal has been resolved already."
) {}

/** Not a token of this service. */
export class InvalidToken extends coded<InvalidToken>()(
  "invalid_token",
  401,
  "This is no token of this service."
) {}
