/** Converts ban rows to API responses, for the player and for operators. */
import { DateTime } from "effect"
import type { Sanction } from "#rpc/appeals"
import type { PlayerId } from "#rpc/ids"
import type { AppealItem, BanResult, OperatorSanction } from "#rpc/moderation"
import type { SanctionRow } from "#sql/moderation"
import { isActive } from "../players/active-ban.ts"
import { closeExpiredAppeal } from "./appeal-rules.ts"

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

/** The player's view of a ban; it omits the operator's reason. */
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

/** The operators' view of a ban. */
export const operatorView = (row: SanctionRow, now: DateTime.Utc): OperatorSanction => ({
  ...sanctionView(row, now),
  reason: row.reason
})

/** Ban fields of a player: the active ban, or the last one if it expired; nulls if lifted or none. */
export const banView = (last: SanctionRow | undefined, now: DateTime.Utc) => {
  const shown = last?.liftedAt === null ? last : undefined
  return {
    banned: isActive(last, now),
    bannedAt: isoOrNull(shown?.createdAt ?? null),
    banReason: shown?.reason ?? null,
    banExpiresAt: isoOrNull(shown?.expiresAt ?? null)
  }
}

/** The response to a ban or an unban. */
export const banResult = (
  id: PlayerId,
  last: SanctionRow | undefined,
  revokedSessions: number,
  now: DateTime.Utc
): BanResult => ({ player: { id, ...banView(last, now), revokedSessions } })

/** The operators' view of an appeal; `undefined` for a ban without one. */
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
