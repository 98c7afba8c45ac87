/**
 * Rules of bans and appeals, as pure functions from a player's last ban, a request and the current time
 * to the new row.
 *
 * Invariants: an ended ban never becomes active again. A ban has at most one appeal. An appeal gets at
 * most one resolution. No appeal is open after its ban has ended.
 */
import { DateTime, Result } from "effect"
import { AlreadyAppealed, AlreadyResolved, SanctionInactive } from "#rpc/errors/codes"
import type { AppealId } from "#rpc/ids"
import type { SanctionRow } from "#sql/moderation"
import { isActive } from "../players/active-ban.ts"

type Time = DateTime.Utc

/** Fields of a ban that its creation sets. */
export type NewBan = Pick<
  SanctionRow,
  "id" | "environmentId" | "playerId" | "reason" | "note" | "expiresAt"
>

const acceptOpenAppeal = (ban: SanctionRow, at: Time): SanctionRow =>
  ban.appealStatus === "open"
    ? { ...ban, appealStatus: "accepted", appealResponse: null, resolvedAt: at }
    : ban

/** Accepts the open appeal of an expired ban; the appeal closes at the ban's expiry time. */
export const closeExpiredAppeal = (ban: SanctionRow, now: Time): SanctionRow => {
  const { expiresAt, liftedAt } = ban
  const expired = liftedAt === null && expiresAt !== null && !isActive(ban, now)
  return expired ? acceptOpenAppeal(ban, expiresAt) : ban
}

/**
 * Creates a ban, or changes the active one. The active ban gets the new expiry and any new texts, and
 * keeps its appeal.
 */
export const ban = (last: SanctionRow | undefined, next: NewBan, now: Time): SanctionRow => {
  if (last !== undefined && isActive(last, now)) {
    const { expiresAt, note, reason } = next
    return { ...last, expiresAt, note: note ?? last.note, reason: reason ?? last.reason }
  }
  return {
    ...next,
    createdAt: now,
    liftedAt: null,
    appealId: null,
    appealMessage: null,
    appealStatus: null,
    appealResponse: null,
    appealedAt: null,
    resolvedAt: null
  }
}

/** Lifts the ban if it is active. */
export const lift = (last: SanctionRow, now: Time): SanctionRow =>
  isActive(last, now)
    ? { ...acceptOpenAppeal(last, now), liftedAt: now }
    : closeExpiredAppeal(last, now)

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
