/**
 * Format of stored snapshots. During an upgrade a room or channel may wake on a runner of the release
 * before the one that wrote its snapshot.
 *
 * - A field that is added does not change the format. The reader ignores fields that it does not know,
 *   and has a default for those that are missing. An older runner writes the snapshot again without the
 *   added field, so losing the field must do no harm.
 * - Every other change is a new format. A release reads it before the next one writes it.
 * - A runner refuses a format above its own. The entity stays unavailable, with its snapshot as it is,
 *   until a runner that reads the format owns it.
 */
import { Schema } from "effect"

/** The format of a snapshot, at most `newest`. Snapshots without one have format 1. */
export const snapshotFormat = (newest: number) =>
  Schema.optionalKey(
    Schema.Int.check(
      Schema.isLessThanOrEqualTo(newest, {
        message: `Expected format ${newest} at most. A newer release wrote the snapshot: finish the upgrade`
      })
    )
  )
