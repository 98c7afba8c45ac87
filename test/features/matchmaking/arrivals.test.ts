/** Players who ask for a match together: they share as few rooms as hold them. */
import { layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestApp } from "#testing/app"
import { sampleSize } from "../../support/security/sizes.ts"
import { AppLive } from "../../support/service.ts"
import { configureModes, matchBurst, matchPairs } from "../../support/match-arrivals.ts"

/** Pairs of each kind, of which there are eight. */
const pairs = sampleSize(125, 3)

layer(AppLive, { timeout: "600 seconds", excludeTestServices: true })("quick match", (it) => {
  it.effect(
    "gives players who arrive together one room",
    () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        yield* configureModes(app)
        yield* matchPairs([app, app], pairs)
      }),
    { tags: "sized", timeout: 600_000 }
  )

  it.effect("opens 13 rooms of eight for 100 players who arrive at once", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      yield* configureModes(app)
      yield* matchBurst([app])
    })
  )
})
