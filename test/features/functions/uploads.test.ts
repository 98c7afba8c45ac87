/** Uploads to functions that answer before they have read the body. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { upload } from "../../support/function-uploads.ts"
import { FunctionsWorld, program, withFunctions } from "../../support/functions.ts"

const live = { timeout: "120 seconds", excludeTestServices: true } as const

const bytes = 20_000_000
const uploads = 20

layer(withFunctions(), live)("uploads to functions", (it) => {
  it.effect(
    "answers what the function answers before it has read the body",
    () =>
      Effect.gen(function* () {
        const world = yield* FunctionsWorld
        const id = world.live(
          program(`export default { fetch: () => new Response("no", { status: 403 }) }`)
        )
        for (let i = 0; i < uploads; i += 1) {
          const url = `${world.url}/${id}/`
          const answer = yield* Effect.promise(() => upload({ url, bytes }))
          assert.match(answer, /^HTTP\/1\.1 403 [^]*no/, `upload ${i}`)
        }
      }),
    { tags: "long" }
  )
})
