/**
 * Counts visits and plays through share links, once for each visitor, link and UTC day. A visitor is a
 * player, or the address and the browser. A player whose account is at most a day old counts as new,
 * once. Of one address a bounded number of visitors counts. The database stores only hashes under a
 * random salt of the day, and deletes salt and hashes afterwards.
 */
import { createHmac } from "node:crypto"
import { Cache, DateTime, Effect, Option } from "effect"
import { SecureRandom } from "effect/crypto"
import type { PlayerCaller } from "#rpc/auth"
import { NotFound } from "#rpc/errors/codes"
import type { EnvironmentId } from "#rpc/ids"
import { ShareVisitRepository } from "#sql/share/visits"
import { sweepHourly } from "#server/platform/database"
import { makeFind } from "./links.ts"
import { makeReferredAt } from "./referrals.ts"

/** Visitor: a player, or a person at this address with this browser. */
export interface Visitor {
  readonly player: PlayerCaller | undefined
  readonly address: string
  readonly userAgent: string
}

const saltBytes = 32
const hashBytes = 16
/** Number of cached salts: today, yesterday, and a day that just ended. */
const saltsCached = 3

/** Returns the UTC day of a time, as an ISO date. */
export const dayOf = (time: DateTime.Utc): string => DateTime.formatIsoDateUtc(time)

const identityOf = ({ address, player, userAgent }: Visitor): string =>
  player === undefined ? `browser\n${address}\n${userAgent}` : `player\n${player.playerId}`

const hashOf = (salt: Uint8Array, environmentId: string, identity: string): Uint8Array =>
  createHmac("sha256", salt).update(`${environmentId}\n${identity}`).digest().subarray(0, hashBytes)

/** Hashes visitors and addresses under the salt of a day. */
const makeHash = Effect.gen(function* () {
  const random = yield* SecureRandom.SecureRandom
  const visits = yield* ShareVisitRepository
  const salts = yield* Cache.make({
    capacity: saltsCached,
    lookup: (day: string) =>
      Effect.flatMap(random.randomBytes(saltBytes), (fresh) => visits.salt(day, fresh))
  })
  return (day: string, environmentId: EnvironmentId, identity: string) =>
    Effect.map(Cache.get(salts, day), (salt) => hashOf(salt, environmentId, identity))
})

/** Counts a visit, and returns whether it counted. Deletes expired salts and hashes. */
export const makeVisit = Effect.gen(function* () {
  const find = yield* makeFind
  const hash = yield* makeHash
  const referredAt = yield* makeReferredAt
  const visits = yield* ShareVisitRepository
  // An account made late yesterday is still new today, so the salt of yesterday is still needed.
  yield* sweepHourly("Visitors of share links", (now) =>
    visits.sweep(dayOf(DateTime.subtract(now, { days: 1 })))
  )
  return Effect.fn("Share.visit")(function* (
    environmentId: EnvironmentId,
    visitor: Visitor,
    { landed, shareId }: { readonly landed: boolean; readonly shareId: string }
  ) {
    const link = yield* find(environmentId, shareId)
    if (Option.isNone(link)) return yield* new NotFound()
    const now = yield* DateTime.now
    const day = dayOf(now)
    const madeAt =
      visitor.player === undefined
        ? Option.none()
        : yield* referredAt(visitor.player, link.value.createdAt, now)
    const arrival = Option.isNone(madeAt)
      ? null
      : {
          day: dayOf(madeAt.value),
          visitor: yield* hash(dayOf(madeAt.value), environmentId, identityOf(visitor))
        }
    const counted = yield* visits.count({
      environmentId,
      linkId: shareId,
      day,
      event: landed ? "landed" : "played",
      visitor: yield* hash(day, environmentId, identityOf(visitor)),
      address: yield* hash(day, environmentId, `address\n${visitor.address}`),
      arrival
    })
    return { counted }
  })
})
