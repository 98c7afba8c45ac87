/**
 * Clients of functions that go away, stall, half-close or reset at any point of a call, on two runners.
 *
 * @module-tag long
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { inject } from "vitest"
import { TestDatabase } from "#testing/app"
import { clientFaults, forms } from "../../support/passing/client-faults.ts"
import { DatabaseLive } from "../../support/service.ts"

const patient = { excludeTestServices: true, timeout: "1200 seconds" } as const

const say = (line: string) => process.stdout.write(`${line}\n`)

/** To repeat: `npm run test:faults -- --seed 8`, with `--short` for the run of `npm test`. */
const seed = 8

layer(DatabaseLive, patient)("clients of functions that go away", (it) => {
  it.effect(
    "leave a service that lives, answers everybody with their own response and keeps nothing",
    () =>
      Effect.gen(function* () {
        const { url: databaseUrl } = yield* TestDatabase
        const { findings } = yield* clientFaults({
          ...forms[inject("form")],
          seed,
          databaseUrl,
          say
        })
        assert.deepStrictEqual(findings, [], `seed ${seed}`)
      }),
    { tags: "sized", timeout: 1_200_000 }
  )
})
