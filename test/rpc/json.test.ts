/** Numbers that JSON text does not carry to the other side unchanged. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { changedNumberOf as check } from "#rpc/json"

/** Whether two decimal numbers are equal, digit by digit. */
const isSame = (one: string, other: string): boolean => {
  const scaled = (text: string): readonly [bigint, number] => {
    const [mantissa = "", exponent = "0"] = text.toLowerCase().split("e")
    const [whole = "", fraction = ""] = mantissa.split(".")
    return [BigInt(whole + fraction), Number(exponent) - fraction.length]
  }
  const [a, scaleA] = scaled(one)
  const [b, scaleB] = scaled(other)
  const low = Math.min(scaleA, scaleB)
  return a * 10n ** BigInt(scaleA - low) === b * 10n ** BigInt(scaleB - low)
}

describe("the check for numbers that change", () => {
  it("finds a number that is not finite after parsing, or an integer beyond 2^53 - 1 with other digits", () => {
    for (const number of ["1e400", "-1e400", "1E+309", "9007199254740993", "-9007199254740993"]) {
      assert.strictEqual(check(`{"data":{"n":[0,${number}]}}`), "data.n.1", number)
    }
    const exact = ["9007199254740991", "9007199254740992", "9007199254740994", "1e308", "0.1"]
    for (const number of [
      ...exact,
      "1e21",
      "-1E-7",
      "12345678901234567e-10",
      "0.12345678901234567"
    ]) {
      assert.isUndefined(check(`{"data":{"n":[0,${number}]}}`), number)
    }
  })

  it("passes an integer exactly if JSON keeps its digits", () => {
    const digits = fc.stringMatching(/^-?[1-9]\d{0,40}$/)
    const exponents = fc.option(fc.stringMatching(/^[eE][+]?\d{1,2}$/), { nil: "" })
    fc.assert(
      fc.property(digits, exponents, (integer, exponent) => {
        const text = `${integer}${exponent}`
        assert.strictEqual(check(text) === undefined, isSame(text, JSON.stringify(Number(text))))
      })
    )
  })

  it("passes every JSON text that was written from numbers", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        assert.isUndefined(check(text))
      })
    )
  })

  it("names the path of a number, past texts that look like numbers and names that are escaped", () => {
    fc.assert(
      fc.property(fc.string(), fc.json(), fc.array(fc.json()), (name, before, items) => {
        const key = JSON.stringify(name)
        const list = [...items, "9007199254740993"].join(",")
        const text = `{"a":"1e400 9007199254740993","b":${before},"c":{${key}:[${list}]}}`
        assert.strictEqual(check(text), `c.${name}.${items.length}`)
      })
    )
  })

  it("passes a text that is not JSON, which is refused as such, without an exception", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        assert.doesNotThrow(() => check(`${text} 1e400 "\\u12`))
      })
    )
  })
})
