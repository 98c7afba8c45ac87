/** Texts of links and cards: languages, scores, tags. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import {
  cardTags,
  formatScore,
  htmlOf,
  languagesOf,
  postText,
  textIn
} from "#server/features/share/texts"

describe("the language of a text", () => {
  it("chooses the reader's first language that a text has: exact, then of any region, then English", () => {
    const text = { en: "Hello", ja: "こんにちは", "pt-BR": "Olá" }
    const read = (header: string) => textIn(text, languagesOf(header))
    assert.strictEqual(read("ja"), "こんにちは")
    assert.strictEqual(read("ja-JP"), "こんにちは")
    assert.strictEqual(read("pt-br"), "Olá")
    assert.strictEqual(read("de;q=0.9, ja;q=0.5"), "こんにちは")
    assert.strictEqual(read("ja;q=0.1, pt-BR;q=0.2"), "Olá")
    assert.strictEqual(read("de"), "Hello")
    assert.strictEqual(read(""), "Hello")
    assert.strictEqual(textIn({ de: "Hallo", ja: "こんにちは" }, ["fr"]), "Hallo")
    assert.strictEqual(textIn("One", ["fr"]), "One")
  })

  it("formats a score under any Accept-Language header, also with malformed tags", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 300 }), (header) => {
        const shown = formatScore(1234.5, languagesOf(header))
        assert.isAbove(shown.length, 0, header)
      })
    )
    for (const tag of ["en-US-US", "en-a1", "de-1996-1996", "xx-xx-xx", "x-y", "i-klingon"]) {
      assert.strictEqual(formatScore(1234.5, languagesOf(tag)), "1,234.5", tag)
    }
  })
})

describe("a score in a text", () => {
  it("groups a score as the reader writes numbers, and shows a huge one with an exponent", () => {
    assert.strictEqual(formatScore(1234567, ["en"]), "1,234,567")
    assert.strictEqual(formatScore(1234567, ["de"]), "1.234.567")
    assert.strictEqual(formatScore(-0.12345, ["en"]), "-0.123")
    assert.strictEqual(formatScore(1e308, ["en"]), "1E308")
    assert.strictEqual(formatScore(-0, ["en"]), "0")
    assert.strictEqual(formatScore(-0.0001, ["en"]), "0")
  })

  it("replaces the placeholder of a score in a text, and drops it without a score", () => {
    assert.strictEqual(postText("I made {score} points", 1500, ["en"]), "I made 1,500 points")
    assert.strictEqual(postText("I made {score} points", null, ["en"]), "I made points")
    assert.strictEqual(postText("$& {score}", 1, ["en"]), "$& 1")
    const text = { en: "I made {score}", fr: "J'ai {score}" }
    assert.strictEqual(postText(text, 1500, ["de"]), "I made 1,500")
    assert.strictEqual(postText("{score}", 1500, ["de"]), "1.500")
    assert.isNull(postText(undefined, 1, ["en"]))
  })
})

const unescape = (html: string): string =>
  html
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&#39;", "'")
    .replaceAll("&amp;", "&")

describe("card tags", () => {
  it("keeps every text of card tags inside the value of its attribute", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.string(), (title, description) => {
        const texts = { title, description, imageAlt: undefined, site: undefined }
        const tags = cardTags(texts, { url: "https://a.example/c.png", isRendered: true })
        const html = htmlOf(tags)
        const contents = [...html.matchAll(/content="([^"]*)"/g)].map(([, text]) =>
          unescape(text ?? "")
        )
        assert.deepStrictEqual(
          contents,
          tags.map(({ content }) => content)
        )
        assert.notMatch(html.replace(/content="[^"]*"/g, ""), /[<>](?!\n|meta|$)/)
      })
    )
  })
})
