/**
 * Size of long security tests: a tenth by default, everything with
 * `SVC_THREATS=full npx vitest run --project service test/security`.
 */
import { Config, Effect } from "effect"

/** The full number of samples, or a tenth of it. */
export const sampleSize = (full: number) =>
  Effect.map(Config.withDefault(Config.String("SVC_THREATS"), "tenth"), (size) =>
    size === "full" ? full : Math.ceil(full / 10)
  )
