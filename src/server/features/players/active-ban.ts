/** Whether a ban is in force, and the error that a banned player gets. */
import { DateTime } from "effect"
import { PlayerBanned } from "#rpc/errors/codes"
import type { SanctionRow } from "#sql/moderation"

const isoOrNull = (time: DateTime.Utc | null): string | null =>
  time === null ? null : DateTime.formatIso(time)

/** Is there a ban, and is it in force? */
export const isActive = (
  ban: Pick<SanctionRow, "liftedAt" | "expiresAt"> | undefined,
  now: DateTime.Utc
): boolean =>
  ban !== undefined &&
  ban.liftedAt === null &&
  (ban.expiresAt === null || DateTime.isLessThan(now, ban.expiresAt))

/** The refusal of a banned player. */
export const bannedBy = (ban: Pick<SanctionRow, "id" | "expiresAt" | "note">): PlayerBanned =>
  new PlayerBanned({
    details: { sanctionId: ban.id, expiresAt: isoOrNull(ban.expiresAt), note: ban.note }
  })
