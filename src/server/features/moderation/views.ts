/** Bans and appeals as they are told: to the player, to operators (spec section 2.1, decisions 3.3). */
import { DateTime } from "effect"
import type { Sanction } from "#rpc/appeals"
import type { PlayerId } from "#rpc/ids"
import type { AppealItem, BanResult, OperatorSanction } from "#rpc/moderation"
import type { SanctionRow } from "#sql/moderation"
import { isActive } from "../players/active-ban.ts"
import { closeExpiredAppeal } from "./rules.ts"

const iso = DateTime.formatIso

const isoOrNull = (time: DateTime.Utc | null): string | null => (time === null ? null : iso(time))

const appealView = ({
  appealMessage,
  appealResponse,
  appealStatus,
  appealedAt
}: SanctionRow): Pick<Sanction, "appeal"> =>
  appealStatus === null || appealMessage === null || appealedAt === null
    ? {}
    : {
        appeal: {
          status: appealStatus,
          message: appealMessage,
          createdAt: iso(appealedAt),
          response: appealResponse
        }
      }

/** A ban as its player sees it. */
export const sanctionView = (row: SanctionRow, now: DateTime.Utc): Sanction => ({
  id: row.id,
  kind: "ban",
  active: isActive(row, now),
  note: row.note,
  createdAt: iso(row.createdAt),
  expiresAt: isoOrNull(row.expiresAt),
  liftedAt: isoOrNull(row.liftedAt),
  ...appealView(closeExpiredAppeal(row, now))
})

/** A ban as operators see it. */
export const operatorView = (row: SanctionRow, now: DateTime.Utc): OperatorSanction => ({
  ...sanctionView(row, now),
  reason: row.reason
})

/** A player's ban: the one in force, or the last one when it has run out; nulls when it was lifted. */
export const banView = (last: SanctionRow | undefined, now: DateTime.Utc) => {
  const shown = last?.liftedAt === null ? last : undefined
  return {
    banned: isActive(last, now),
    bannedAt: isoOrNull(shown?.createdAt ?? null),
    banReason: shown?.reason ?? null,
    banExpiresAt: isoOrNull(shown?.expiresAt ?? null)
  }
}

/** The answer to a ban or its end. */
export const banResult = (
  id: PlayerId,
  last: SanctionRow | undefined,
  revokedSessions: number,
  now: DateTime.Utc
): BanResult => ({ player: { id, ...banView(last, now), revokedSessions } })

/** An appeal as operators see it. */
export const appealItem = (
  stored: SanctionRow,
  displayName: string,
  now: DateTime.Utc
): AppealItem | undefined => {
  const row = closeExpiredAppeal(stored, now)
  const { appealId, appealMessage, appealStatus, appealedAt } = row
  if (appealId === null || appealMessage === null) return undefined
  if (appealStatus === null || appealedAt === null) return undefined
  return {
    id: appealId,
    sanctionId: row.id,
    player: { id: row.playerId, displayName },
    message: appealMessage,
    status: appealStatus,
    response: row.appealResponse,
    createdAt: iso(appealedAt),
    resolvedAt: isoOrNull(row.resolvedAt),
    sanction: operatorView(row, now)
  }
}
