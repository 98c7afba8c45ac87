/**
 * Expiry of guests who cannot come back, because their last refresh token expired more than
 * `SVC_GUEST_EXPIRY_DAYS` days ago. One process at a time deletes them in batches, with all data, like
 * a player's own deletion.
 */
import { DateTime, Effect, Layer } from "effect"
import { ExpiredGuestRepository } from "#sql/player-data/expired-guests"
import { sweepHourly } from "#server/platform/database"
import { Settings } from "#server/platform/settings/settings"
import type { PlayerRef } from "../moderation/service.ts"
import { PlayerData } from "./service.ts"

/** Guests that are found with one statement. */
const expiryBatch = 100

/** Time for which one process deletes before another one may. */
const expiryClaimSeconds = 30 * 60

const makeSweep = Effect.gen(function* () {
  const data = yield* PlayerData
  const repository = yield* ExpiredGuestRepository

  /** Removes a guest. A failed deletion repeats an hour later. */
  const remove = (guest: PlayerRef) =>
    data.delete(guest, Effect.void).pipe(
      Effect.as(1),
      Effect.catchTag("player_not_found", () => Effect.succeed(0)),
      Effect.catchCause((cause) =>
        Effect.logWarning("Failed to delete an expired guest", cause).pipe(
          Effect.annotateLogs({ ...guest }),
          Effect.as(0)
        )
      )
    )

  const removeAll = Effect.fnUntraced(function* (expiredBefore: DateTime.Utc, until: DateTime.Utc) {
    let after = ""
    let removed = 0
    while (DateTime.isLessThan(yield* DateTime.now, until)) {
      const page = yield* repository.page({ after, expiredBefore, limit: expiryBatch })
      for (const guest of page) removed += yield* remove(guest)
      const last = page.at(-1)
      if (last === undefined || page.length < expiryBatch) break
      after = last.playerId
    }
    return removed
  })

  return Effect.fn("GuestExpiry.sweep")(function* (now: DateTime.Utc, days: number) {
    const until = DateTime.add(now, { seconds: expiryClaimSeconds })
    if (!(yield* repository.claim({ now, until }))) return
    const removed = yield* removeAll(DateTime.subtract(now, { days }), until).pipe(
      Effect.ensuring(repository.release(now))
    )
    if (removed > 0) yield* Effect.logInfo(`Deleted ${removed} guests whose sessions had expired`)
  })
})

/** Deletes expired guests every hour; `SVC_GUEST_EXPIRY_DAYS=0` keeps them. */
export const GuestExpiry = Layer.effectDiscard(
  Effect.gen(function* () {
    const { guestExpiryDays } = yield* Settings
    if (guestExpiryDays === 0) return
    const sweep = yield* makeSweep
    yield* sweepHourly("Expired guests", (now) => sweep(now, guestExpiryDays))
  })
)
