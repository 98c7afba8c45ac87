/**
 * Rules of bans, as pure functions from a player's last ban, a request and the current time to the new
 * row. An ended ban never becomes active again.
 */
import type { DateTime } from "effect"
import type { SanctionRow } from "#sql/moderation"
import { isActive } from "../players/active-ban.ts"
import { acceptOpenAppeal, closeExpiredAppeal } from "./appeal-rules.ts"

type Time = DateTime.Utc

/** Fields of a ban that its creation sets. */
export type NewBan = Pick<
  SanctionRow,
  "id" | "environmentId" | "playerId" | "reason" | "note" | "expiresAt"
>

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
