/**
 * The rules of bans and appeals (spec section 3, decisions 3.3). Pure: a player's last ban, what is
 * asked and the time in, the ban as it is then out.
 *
 * Invariants: a ban that is over never begins again; it has at most one appeal, which is resolved once
 * and never open when the ban is over.
 */
import { DateTime, Result } from "effect"
import { AlreadyAppealed, AlreadyResolved, SanctionInactive } from "#rpc/errors/codes"
import type { AppealId } from "#rpc/ids"
import type { SanctionRow } from "#sql/moderation"
import { isActive } from "../players/active-ban.ts"

type Time = DateTime.Utc

/** What a ban is begun with. */
export type NewBan = Pick<
  SanctionRow,
  "id" | "environmentId" | "playerId" | "reason" | "note" | "expiresAt"
>

const acceptOpenAppeal = (ban: SanctionRow, at: Time): SanctionRow =>
  ban.appealStatus === "open"
    ? { ...ban, appealStatus: "accepted", appealResponse: null, resolvedAt: at }
    : ban

/** The ban as the time has left it: its end by itself closes an open appeal. */
export const closeExpiredAppeal = (ban: SanctionRow, now: Time): SanctionRow => {
  const { expiresAt, liftedAt } = ban
  const over = liftedAt === null && expiresAt !== null && !isActive(ban, now)
  return over ? acceptOpenAppeal(ban, expiresAt) : ban
}

/** A new ban; one that is in force has another reason and end from now on, and keeps its appeal. */
export const ban = (last: SanctionRow | undefined, next: NewBan, now: Time): SanctionRow => {
  if (last !== undefined && isActive(last, now)) {
    const { expiresAt, note, reason } = next
    return { ...last, expiresAt, note, reason }
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

/** The ban is lifted, if it is in force. */
export const lift = (last: SanctionRow, now: Time): SanctionRow =>
  isActive(last, now)
    ? { ...acceptOpenAppeal(last, now), liftedAt: now }
    : closeExpiredAppeal(last, now)

/** The player appeals, once. */
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

/** The operator's word on an appeal; accepting it lifts the ban. */
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
