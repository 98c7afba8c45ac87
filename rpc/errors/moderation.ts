/** Errors of moderation: appeals and token verification. */
import { coded } from "./wire.ts"

/** This ban already has an appeal, and each ban can have only one. Wait for its resolution. */
export class AlreadyAppealed extends coded<AlreadyAppealed>()(
  "already_appealed",
  409,
  "This ban already has an appeal."
) {}

/** The ban has ended, so there is nothing to appeal. Sign in again. */
export class SanctionInactive extends coded<SanctionInactive>()(
  "sanction_inactive",
  409,
  "This ban has ended."
) {}

/** The appeal was resolved before, by an operator or by the end of the ban. Read it again. */
export class AlreadyResolved extends coded<AlreadyResolved>()(
  "already_resolved",
  409,
  "This appeal is already resolved."
) {}

/** The token is malformed, used, expired, or from another service. Get a new one. */
export class InvalidToken extends coded<InvalidToken>()(
  "invalid_token",
  401,
  "This is not a valid token of this service."
) {}
