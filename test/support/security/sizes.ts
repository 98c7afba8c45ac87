/**
 * Sizes of security tests with the tag `sized`: all samples in the long form, fewer in the short one. All
 * of them: `npx vitest run --config vitest.long.config.ts --project service --tags-filter sized`.
 */
import { inject } from "vitest"

/** The full number of samples in the long form, else a tenth of it or the given number. */
export const sampleSize = (full: number, short = Math.ceil(full / 10)): number =>
  inject("form") === "long" ? full : short

/** All in the long form, else one of each `step`. */
export const sampled = <A>(all: ReadonlyArray<A>, step: number): ReadonlyArray<A> =>
  all.filter((_, index) => index % sampleSize(1, step) === 0)
