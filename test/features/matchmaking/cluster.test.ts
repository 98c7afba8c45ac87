/** Players who ask for a match together, each on another runner. */
import { layer } from "@effect/vitest"
import { Effect } from "effect"
import { live } from "../../support/security/security-harness.ts"
import { TwoRunners } from "../../support/two-runners.ts"
import { configureModes, matchPairs } from "../../support/match-arrivals.ts"

/** Pairs of each kind, of which there are eight. */
const pairs = 125

layer(TwoRunners.layerWith({ SVC_THROTTLES: "off" }), live)("quick match on two runners", (it) => {
  it.effect(
    "gives players who arrive together one room",
    () =>
      Effect.gen(function* () {
        const { at1, at2 } = yield* TwoRunners
        yield* configureModes(at1)
        yield* matchPairs([at1, at2], pairs)
        yield* matchPairs([at2, at1], pairs)
      }),
    { tags: "long", timeout: 1_800_000 }
  )
})
