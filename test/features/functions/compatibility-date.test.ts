/** Compatibility dates of functions: the runtime knows its own day and all before it. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { FunctionsRuntime } from "#server/features/functions/runtime"
import { program, withFunctions } from "../../support/functions.ts"

const live = { timeout: "60 seconds", excludeTestServices: true } as const

const dated = (compatibilityDate: string) => ({
  ...program("export default {}"),
  compatibilityDate
})

layer(withFunctions(), live)("the compatibility date of functions", (it) => {
  it.effect("refuses a day after the runtime's own, and accepts an earlier one", () =>
    Effect.gen(function* () {
      const runtime = yield* FunctionsRuntime
      const error = yield* Effect.flip(runtime.validate(dated("2099-12-31")))
      assert.strictEqual(error._tag, "function_invalid")
      assert.match(error.message, /2099-12-31 is too late: this runtime is of 20\d\d-\d\d-\d\d/)
      assert.deepStrictEqual(yield* runtime.validate(dated("2025-01-01")), { hooks: [] })
    })
  )
})
