/** Rules of bans: when a ban is active, and the error that it causes. */
import { DateTime } from "effect"
import { PlayerBanned } from "#rpc/errors/codes"
import type { SanctionRow } from "#sql/moderation"

const isoOrNull = (time: DateTime.Utc | null): string | null =>
  time === null ? null : DateTime.formatIso(time)

/** Whether an active ban exists: neither lifted nor expired. */
export const isActive = (
  ban: Pick<SanctionRow, "liftedAt" | "expiresAt"> | undefined,
  now: DateTime.Utc
): boolean =>
  ban !== undefined &&
  ban.liftedAt === null &&
  (ban.expiresAt === null || DateTime.isLessThan(now, ban.expiresAt))

/** Returns the error for requests by a banned player. */
export const bannedBy = (ban: Pick<SanctionRow, "id" | "expiresAt" | "note">): PlayerBanned =>
  new PlayerBanned({
    details: { sanctionId: ban.id, expiresAt: isoOrNull(ban.expiresAt), note: ban.note }
  })
