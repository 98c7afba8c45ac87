/** Players who ask for a match together, each on another runner. */
import { layer } from "@effect/vitest"
import { Effect } from "effect"
import { live } from "../../support/security/security-harness.ts"
import { sampleSize } from "../../support/security/sizes.ts"
import { TwoRunners } from "../../support/two-runners.ts"
import { configureModes, matchBurst, matchPairs } from "../../support/match-arrivals.ts"

/** Pairs of each kind, of which there are eight. */
const pairs = sampleSize(125, 2)

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
    { tags: "sized", timeout: 1_800_000 }
  )

  it.effect("opens 13 rooms of eight for 100 players who arrive at once", () =>
    Effect.gen(function* () {
      const { at1, at2 } = yield* TwoRunners
      yield* configureModes(at1)
      yield* matchBurst([at1, at2])
    })
  )
})
