/** Email addresses: which ones accounts may have, and which of them are one mailbox. */
import { domainToUnicode } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { isEmail, isGivenEmail, normalizeEmail } from "#rpc/email"
import { emailForms } from "#server/platform/email-forms"

const letters = [..."abcxyz059éßöñяжλ日本漢字한글"]
const label = fc
  .array(fc.constantFrom(...letters), { minLength: 1, maxLength: 8 })
  .map((characters) => characters.join(""))
const domain = fc
  .array(label, { minLength: 1, maxLength: 3 })
  .map((labels) => [...labels, "example"].join("."))
const local = fc
  .array(fc.constantFrom(..."abcABC019.+_-", "é", "я", "日"), { minLength: 1, maxLength: 12 })
  .map((characters) => characters.join(""))

/** Spellings of a domain that lead to one host. */
const spellings = [
  (name: string) => name,
  (name: string) => name.toUpperCase().replaceAll("ẞ", "ß"),
  (name: string) => name.normalize("NFD"),
  (name: string) => name.replaceAll(".", "\u3002"),
  (name: string) =>
    name.replaceAll(/[a-z]/g, (c) => String.fromCodePoint(c.charCodeAt(0) + 0xfee0)),
  (name: string) => new URL(`http://${name}`).hostname
]

describe("addresses of mailboxes", () => {
  it("addresses have one stored form for all spellings of a domain, and it is its own", () =>
    fc.assert(
      fc.property(local, domain, fc.constantFrom(...spellings), (name, host, spell) => {
        fc.pre(URL.canParse(`http://${host}`))
        const stored = normalizeEmail(`${name}@${host}`)
        const other = ` ${name}@${spell(host)} `
        // One letter may have two capital forms.
        fc.pre(new URL(`http://${spell(host)}`).hostname === new URL(`http://${host}`).hostname)
        assert.isTrue(isEmail(other), other)
        assert.strictEqual(normalizeEmail(other), stored)
        assert.strictEqual(normalizeEmail(stored), stored)
        assert.match(stored.slice(stored.lastIndexOf("@")), /^@[a-z0-9.-]+$/)
      })
    ))

  it("addresses are looked for in the form of earlier releases, too, and never in a mailbox of others", () =>
    fc.assert(
      fc.property(local, domain, fc.constantFrom(...spellings), (name, host, spell) => {
        fc.pre(URL.canParse(`http://${host}`))
        const given = `${name}@${spell(host)}`
        const unicode = `${name}@${domainToUnicode(new URL(`http://${host}`).hostname)}`
        fc.pre(new URL(`http://${spell(host)}`).hostname === new URL(`http://${host}`).hostname)
        const forms = emailForms(given)
        assert.include(forms, given.trim().normalize("NFC").toLowerCase())
        assert.include(forms, unicode.normalize("NFC").toLowerCase())
        for (const form of forms) assert.strictEqual(normalizeEmail(form), normalizeEmail(given))
      })
    ))

  it("an address in ASCII stays as it is, but for case", () => {
    assert.deepStrictEqual(emailForms(" Ada@Example.COM "), ["ada@example.com"])
    assert.strictEqual(normalizeEmail("Ada@Bücher.example"), "ada@xn--bcher-kva.example")
    assert.strictEqual(normalizeEmail("ada@localhost"), "ada@localhost")
  })

  const refused = [
    ["an invisible letter", "ada\u3164@example.com"],
    ["an invisible letter in the domain", "ada@exam\u3164ple.com"],
    ["a blank Braille pattern", "a\u2800da@example.com"],
    ["a variation selector", "ada\ufe0f@example.com"],
    ["a joiner of graphemes", "a\u034fda@example.com"],
    ["a Hangul filler", "a\u115fda@example.com"],
    ["an empty label", "ada@ex..com"],
    ["an empty label in full width", "ada@ex\uff0e.com"],
    ["a dot at the end", "ada@example.com."],
    ["a dot at the start", "ada@.example.com"],
    ["a path", "ada@example.com/b"],
    ["a path in full width", "ada@example.com\uff0fb"],
    ["a query", "ada@example.com?b"],
    ["a fragment", "ada@example.com#b"],
    ["a percent sign", "ada@ex%61mple.com"],
    ["an address of a machine", "ada@127.0.0.1"],
    ["a short address of a machine", "ada@0x7f.1"],
    ["a label that is too long", `ada@${"a".repeat(64)}.example`]
  ] as const
  it.each(refused)("addresses are refused with %s", (_, address) => {
    assert.isFalse(isEmail(address))
  })

  it("addresses of earlier releases can still be given at a sign-in", () => {
    for (const address of ["ada@ex..com", "ada\u3164@example.com"]) {
      assert.isTrue(isGivenEmail(address))
      assert.deepStrictEqual(emailForms(address), [address])
    }
  })
})
