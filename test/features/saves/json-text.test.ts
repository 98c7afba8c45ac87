/** The JSON text of a save's data is stored and returned unchanged. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Layer, Result } from "effect"
import * as fc from "fast-check"
import { parseSaveBody } from "#server/features/saves/body"
import { at } from "#testing/players"
import { nodeWith, SharedDatabase } from "../../support/http-stack.ts"
import { newGame } from "../../support/players.ts"

const limit = 1_048_576

const space = fc.stringMatching(/^[ \t\r\n]{0,3}$/)

const numberText = fc.oneof(
  fc.integer().map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
  fc.constantFrom("-0", "1e400", "12345678901234567890", "0.1000", "1E+2", "-0.0e-0")
)

const stringText = fc.oneof(
  fc.string({ unit: "binary" }).map((text) => JSON.stringify(text)),
  fc.constantFrom('"\\u0000"', '"\\ud800"', '"\\\\"', '"\\\\\\""', '"{[,:]}"', '"\\/"', '" "')
)

/** Generates compact JSON texts, some with duplicate members. */
const { value: jsonText } = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom("null", "true", "false"),
    numberText,
    stringText,
    fc.array(tie("value"), { maxLength: 4 }).map((items) => `[${items.join()}]`),
    fc
      .array(fc.tuple(stringText, tie("value")), { maxLength: 4 })
      .map((members) => `{${members.map(([name, value]) => `${name}:${value}`).join()}}`)
  )
}))

/** Inserts white space between the tokens of a text. */
const spaced = (text: string, pad: string): string =>
  text
    .split(/("(?:[^"\\]|\\.)*"|[[\]{}:,])/)
    .filter((token) => token !== "")
    .join(pad)

const parsed = (body: string) => Result.getOrThrow(parseSaveBody(body, limit))

describe("the body of a save", () => {
  it("yields the text of data without white space between tokens", () => {
    fc.assert(
      fc.property(jsonText, space, (text, pad) => {
        const name = spaced('{"other":{"data":7},"data":', pad)
        const { data, size } = parsed(`${name}${pad}${spaced(text, pad)}${pad},"z":[]}${pad}`)
        assert.strictEqual(data, text)
        assert.strictEqual(size, Buffer.byteLength(text))
      }),
      { numRuns: 2000 }
    )
  })

  it("yields the last data member, also when its name is escaped", () => {
    assert.strictEqual(parsed('{"data":1,"d\\u0061ta":{"a":2},"x":3}').data, '{"a":2}')
    assert.deepStrictEqual(parsed('{"ifVersion":2,"data":"}"}'), {
      data: '"}"',
      size: 3,
      ifVersion: 2
    })
    assert.strictEqual(parsed('{"__proto__":{"data":1},"data":2}').data, "2")
  })

  it("accepts a body that is nested 64 levels deep", () => {
    const nested = (depth: number) => `{"data":${"[".repeat(depth)}${"]".repeat(depth)}}`
    assert.isTrue(Result.isSuccess(parseSaveBody(nested(64), limit)))
    for (const depth of [65, 100_000]) {
      const refused = parseSaveBody(nested(depth), limit)
      assert.isTrue(Result.isFailure(refused) && refused.failure._tag === "invalid_request")
    }
  })

  it("rejects a body that is not an object with data", () => {
    for (const body of ["", "1", "[]", "null", '"data"', "{}", '{"Data":1}', '{"x":{"data":1}}']) {
      assert.isTrue(Result.isFailure(parseSaveBody(body, limit)), body)
    }
  })
})

const Node = nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer))

layer(Node)("saved data", (it) => {
  it.effect("returns saved data byte by byte as it was written", () =>
    Effect.gen(function* () {
      const { player } = yield* newGame({ features: { saves: true } })
      const texts = [
        '{"b":1,"1":2,"a":{"z":0,"y":0},"1":3}',
        "[-0,1e400,12345678901234567890,0.1000,1E+2]",
        '"\\u0000\\ud800\\/ é 🦊 \u2028"',
        '{"__proto__":{"a":1},"constructor":null,"toJSON":"x"}',
        '""',
        ...fc.sample(jsonText, { numRuns: 60, seed: 5 })
      ]
      for (const [index, text] of texts.entries()) {
        const path = `/v1/saves/s${index % 90}`
        const put = yield* player.ask("PUT", path, `{"data":${text}}`)
        assert.strictEqual(put.status, 200, text)
        assert.strictEqual(at(put.body, "size"), Buffer.byteLength(text))
        const raw = yield* player.askText(path)
        assert.isTrue(raw.endsWith(`,"data":${text}}`), raw)
      }
    })
  )
})
