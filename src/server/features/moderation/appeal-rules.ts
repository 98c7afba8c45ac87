/**
 * Rules of appeals, as pure functions from a ban, a request and the current time to the new row.
 *
 * Invariants: a ban has at most one appeal. An appeal gets at most one resolution. No appeal is open
 * after its ban has ended.
 */
import { type DateTime, Result } from "effect"
import { AlreadyAppealed, AlreadyResolved, SanctionInactive } from "#rpc/errors/codes"
import type { AppealId } from "#rpc/ids"
import type { SanctionRow } from "#sql/moderation"
import { isActive } from "../players/active-ban.ts"

type Time = DateTime.Utc

/** Accepts the open appeal of a ban that ends. */
export const acceptOpenAppeal = (ban: SanctionRow, at: Time): SanctionRow =>
  ban.appealStatus === "open"
    ? { ...ban, appealStatus: "accepted", appealResponse: null, resolvedAt: at }
    : ban

/** Accepts the open appeal of an expired ban; the appeal closes at the ban's expiry time. */
export const closeExpiredAppeal = (ban: SanctionRow, now: Time): SanctionRow => {
  const { expiresAt, liftedAt } = ban
  const expired = liftedAt === null && expiresAt !== null && !isActive(ban, now)
  return expired ? acceptOpenAppeal(ban, expiresAt) : ban
}

/** Records the player's appeal; a ban has at most one. */
export const appeal = (
  last: SanctionRow,
  { id, message }: { readonly id: AppealId; readonly message: string },
  now: Time
): Result.Result<SanctionRow, AlreadyAppealed | SanctionInactive> => {
  if (!isActive(last, now)) return Result.fail(new SanctionInactive())
  if (last.appealId !== null) return Result.fail(new AlreadyAppealed())
  return Result.succeed({
    ...last,
    appealId: id,
    appealMessage: message,
    appealStatus: "open",
    appealedAt: now
  })
}

/** Records the operator's decision on an appeal; acceptance lifts the ban. */
export const resolve = (
  appealed: SanctionRow,
  { accept, response }: { readonly accept: boolean; readonly response: string | null },
  now: Time
): Result.Result<SanctionRow, AlreadyResolved> => {
  if (closeExpiredAppeal(appealed, now).appealStatus !== "open")
    return Result.fail(new AlreadyResolved())
  const resolved = { ...appealed, appealResponse: response, resolvedAt: now }
  return Result.succeed(
    accept
      ? { ...resolved, appealStatus: "accepted", liftedAt: now }
      : { ...resolved, appealStatus: "rejected" }
  )
}
