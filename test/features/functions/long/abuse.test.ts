/** The suspension of functions whose process is ended again and again, which takes the delays of restarts. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { FunctionsWorld, program, withFunctions } from "../../../support/functions.ts"

layer(withFunctions(), { timeout: "120 seconds", excludeTestServices: true })("functions", (it) => {
  it.effect("suspends functions whose process is ended ten times in a minute", () =>
    Effect.gen(function* () {
      const world = yield* FunctionsWorld
      const id = world.live(
        program(`export default { fetch() { while (true); } }`, { limits: { cpuMs: 1 } })
      )
      const call = Effect.promise(async () => {
        const response = await fetch(`${world.url}/${id}/`)
        const { error } = await response.json()
        return { status: response.status, code: String(error.code) }
      })
      const codes = new Set<string>()
      while (!world.suspended.has(id)) codes.add((yield* call).code)
      assert.deepStrictEqual([...codes], ["function_cpu_exceeded"])
      assert.deepStrictEqual(yield* call, { status: 503, code: "functions_suspended" })
    })
  )
})
