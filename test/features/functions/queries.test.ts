/** Results of statements on the databases of functions, on real workerd. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { functions } from "#rpc/functions/limits"
import { FunctionsRuntime } from "#server/features/functions/runtime"
import { FunctionsWorld, program, withFunctions } from "../../support/functions.ts"

const live = { timeout: "120 seconds", excludeTestServices: true } as const

const bound = program("export default { fetch: () => new Response() }", {
  bindings: [{ type: "db", name: "DB" }]
})

layer(withFunctions(), live)("a query of a functions database", (it) => {
  const queryOf = Effect.gen(function* () {
    const runtime = yield* FunctionsRuntime
    const id = (yield* FunctionsWorld).live(bound)
    return (sql: string, params: ReadonlyArray<string> = []) => runtime.query(id, "DB", sql, params)
  })

  it.effect("answers a large integer as text with all its digits", () =>
    Effect.gen(function* () {
      const query = yield* queryOf
      const large = yield* query(
        "select 9223372036854775807, -9007199254740993 as b, 1e300, 7, ? as b -- as they are;\n;",
        ["9007199254740993"]
      )
      assert.deepStrictEqual(large.columns.slice(1, 2), ["b"])
      assert.deepStrictEqual(large.rows, [
        ["9223372036854775807", "-9007199254740993", 1e300, 7, "9007199254740993"]
      ])
      const values = yield* query("values (9007199254740991), (9007199254740992)")
      assert.deepStrictEqual(values.rows, [[9_007_199_254_740_991], ["9007199254740992"]])
    })
  )

  it.effect("answers what a statement with `returning` wrote, and runs the statement once", () =>
    Effect.gen(function* () {
      const query = yield* queryOf
      yield* query("create table t (a integer)")
      const written = yield* query("insert into t values (9007199254740993) returning a")
      assert.strictEqual(written.rowsAffected, 1)
      assert.deepStrictEqual((yield* query("select a from t")).rows, [["9007199254740993"]])
    })
  )

  it.effect("says that it has cut the rows of its result", () =>
    Effect.gen(function* () {
      const query = yield* queryOf
      const numbers = (count: number) =>
        `with recursive n(i) as (select 1 union all select i + 1 from n limit ${count}) select i from n`
      const whole = yield* query(numbers(functions.rowsMax))
      assert.lengthOf(whole.rows, functions.rowsMax)
      assert.isUndefined(whole.truncated)
      const cut = yield* query(numbers(functions.rowsMax + 1))
      assert.lengthOf(cut.rows, functions.rowsMax)
      assert.isTrue(cut.truncated)
    })
  )
})
