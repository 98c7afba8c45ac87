/**
 * How much of a long test is done: a tenth with every commit, all of it with
 * `SVC_THREATS=full npx vitest run --project service test/threats`.
 */
import { Config, Effect } from "effect"

/** So many, or a tenth of it. */
export const figure = (full: number) =>
  Effect.map(Config.withDefault(Config.String("SVC_THREATS"), "tenth"), (size) =>
    size === "full" ? full : Math.ceil(full / 10)
  )
