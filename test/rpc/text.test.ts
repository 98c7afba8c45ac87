/** Names and texts that people write. */
import { assert, describe, it } from "@effect/vitest"
import { Option, Schema } from "effect"
import * as fc from "fast-check"
import { nameFrom, nameUpTo, normalizeName, textUpTo } from "#rpc/text"

const isName = Schema.is(nameUpTo(32))

describe("a name", () => {
  it("accepts a name in any script, with emoji and joiners", () => {
    for (const name of ["Ada", " Zoë ", "李雷", "دنا", "👩‍🚀", "نام‌ها", "a".repeat(32)]) {
      assert.isTrue(isName(name), name)
    }
  })

  it("refuses a name that shows no character", () => {
    for (const name of ["", "  ", "\u200b", "\u200d\ufeff", "\u3164", "\u2800", "\u00ad"]) {
      assert.isFalse(isName(name), JSON.stringify(name))
    }
  })

  it("refuses lone surrogates, controls, bidirectional controls and a 33rd character in a name", () => {
    for (const name of ["a\ud800", "a\u0000b", "a\u202eb", "\u2066a", "a\u200f", "a".repeat(33)]) {
      assert.isFalse(isName(name), JSON.stringify(name))
    }
  })

  it("refuses line separators in a name, and a combining mark without a character to sit on", () => {
    for (const name of ["a\u2028b", "a\u2029b", "\u0301", "\u0301\u0302", " \u0301a", "\u20e3"]) {
      assert.isFalse(isName(name), JSON.stringify(name))
    }
    for (const name of ["e\u0301", "ก็", "हिन्दी"]) assert.isTrue(isName(name), name)
    assert.strictEqual(nameFrom("\u0301a\u2028b", 32), "a b")
  })

  it("makes from any foreign text a name in its stored form, or none", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        const name = nameFrom(text, 32)
        if (name === undefined) return
        assert.isTrue(isName(name))
        assert.strictEqual(normalizeName(name), name)
      })
    )
    assert.strictEqual(nameFrom("  a\u202eb\u0000c\ud800 ", 32), "ab c\ufffd")
    assert.isUndefined(nameFrom("\u200b", 32))
  })
})

describe("a text", () => {
  const Text = textUpTo(10)
  const decode = Schema.decodeOption(Text)

  it("accepts a text that shows a character, and no controls in it but line breaks and tabs", () => {
    const isText = Schema.is(Text)
    assert.isTrue(isText("a\r\n\tline"))
    assert.isTrue(isText("a\u2028line"))
    const blank = ["", "\n", " \t", "\u200b"]
    for (const text of ["a\u0000b", "a\udc00", "a\u0007", "a\u202e", "a".repeat(11), ...blank]) {
      assert.isFalse(isText(text), JSON.stringify(text))
      assert.deepStrictEqual(decode(text), Option.none(), JSON.stringify(text))
    }
  })

  it("decodes a text to its composed form", () => {
    assert.deepStrictEqual(decode("e\u0301"), Option.some("\u00e9"))
  })
})
