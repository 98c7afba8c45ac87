/** Codes that people type, in every form in which keyboards and chats deliver them. */
import { assert, describe, it } from "@effect/vitest"
import { Option, Schema } from "effect"
import * as fc from "fast-check"
import { create, join } from "#rpc/rooms/frames"
import { ChosenRoomCode, TypedCode, typedCode } from "#rpc/typed-codes"

const decodeTyped = Schema.decodeUnknownOption(TypedCode)
const decodeChosen = Schema.decodeUnknownOption(ChosenRoomCode)

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
const codes = fc
  .array(fc.constantFrom(...alphabet), { minLength: 4, maxLength: 12 })
  .map((characters) => characters.join(""))

/** Full width forms start this far above ASCII. */
const fullWidth = 0xfee0

const forms: ReadonlyArray<(character: string) => string> = [
  (character) => character,
  (character) => character.toLowerCase(),
  (character) => String.fromCodePoint((character.codePointAt(0) ?? 0) + fullWidth),
  (character) => String.fromCodePoint((character.toLowerCase().codePointAt(0) ?? 0) + fullWidth)
]

const fillers = [" ", "\t", "\n", "\u00a0", "\u3000", "-", "\u2010", "\u2011", "\u2013", "\u2014"]
  .concat(["\u2212", "\uff0d", "\u200b", "\u200d", "\ufeff", "\u00ad", "\u2060", "\u3164"])
  .concat(["\u202a", "\u2069", ""])

/** A code, and a text that a person may type for it. */
const typed = codes.chain((code) =>
  fc
    .array(fc.tuple(fc.constantFrom(...forms), fc.constantFrom(...fillers)), {
      minLength: code.length,
      maxLength: code.length
    })
    .map((parts) => {
      const text = parts.map(([form, filler], i) => form(code.charAt(i)) + filler).join("")
      return { code, text }
    })
)

describe("the rule for typed codes", () => {
  it("reads a code in any case and width, with spaces, dashes and invisible characters", () => {
    fc.assert(
      fc.property(typed, ({ code, text }) => {
        assert.strictEqual(typedCode(text), code)
        assert.deepStrictEqual(decodeTyped(text), Option.some(code))
        assert.deepStrictEqual(decodeChosen(text), Option.some(code))
      })
    )
  })

  it("keeps every other character, so that two codes never become one", () => {
    fc.assert(
      fc.property(codes, codes, (one, other) => {
        if (one !== other) assert.notStrictEqual(typedCode(one), typedCode(other))
      })
    )
    for (const text of ["7KM_B2", "7KM.B2", "7KMÄB2", "7KM😀B2", "7KM\u0301B2"]) {
      assert.notMatch(typedCode(text), /^[A-Z0-9]+$/)
    }
  })

  it("accepts 1 to 64 typed characters", () => {
    assert.isTrue(Option.isNone(decodeTyped("")))
    assert.isTrue(Option.isSome(decodeTyped(`7KMB2P${" ".repeat(58)}`)))
    assert.isTrue(Option.isNone(decodeTyped(`7KMB2P${" ".repeat(59)}`)))
  })

  it("refuses the code of a new room without 4 to 12 letters or digits", () => {
    for (const text of ["ABC", "A B C", "ABCDEFGHIJKLM", "AB_CD", "ÄÖÜß", "----"]) {
      assert.isTrue(Option.isNone(decodeChosen(text)), text)
    }
  })

  it("reads the code of `create` and of `join` alike, in the form in which it was typed", () => {
    const decodeCreate = Schema.decodeUnknownSync(create.payloadSchema)
    const decodeJoin = Schema.decodeUnknownSync(join.payloadSchema)
    const encodeCreate = Schema.encodeUnknownSync(create.payloadSchema)
    assert.strictEqual(decodeCreate({ mode: "duel", code: "party-１" }).code, "PARTY1")
    assert.strictEqual(decodeJoin({ code: " par ty–1\u200b" }).code, "PARTY1")
    assert.deepInclude(Object(encodeCreate({ mode: "duel", code: "party-1" })), { code: "party-1" })
  })
})
