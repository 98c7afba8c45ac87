/** Positions in a config file, and the comparison of two configs. */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as fc from "fast-check"
import { changedPaths } from "#rpc/config-document/changes"
import { jsonPath } from "#rpc/config-document/paths"
import { diffLines } from "#rpc/config-document/diff"
import { parseConfig, validateConfig } from "#cli/document"

const parsed = (text: string) => Result.getOrThrow(parseConfig(text))

const syntax = (text: string) => Result.getOrThrow(Result.flip(parseConfig(text)))

describe("positions in a config file", () => {
  it("counts the lines and columns of names and array entries from 1", () => {
    const { place } = parsed('{\n  "a": [\n    1,\n    { "b-c": { "d": true } }\n  ]\n}')
    const at = (path: string) => {
      const { column, line } = place({ path, message: "" })
      return `${line}:${column}`
    }
    assert.strictEqual(at(""), "1:1")
    assert.strictEqual(at("a"), "2:3")
    assert.strictEqual(at("a[0]"), "3:5")
    assert.strictEqual(at("a[1]"), "4:5")
    assert.strictEqual(at('a[1]["b-c"]'), "4:7")
    assert.strictEqual(at('a[1]["b-c"].d'), "4:16")
  })

  it("falls back to the nearest existing parent for a missing path", () => {
    const { place } = parsed('{\n  "a": [\n    { "b": 1 }\n  ]\n}')
    const lineOf = (path: string) => place({ path, message: "" }).line
    assert.strictEqual(lineOf("a[0].missing.deeper"), 3)
    assert.strictEqual(lineOf('a[0]["odd name"][7]'), 3)
    assert.strictEqual(lineOf("a[5]"), 2)
    assert.strictEqual(lineOf("nowhere"), 1)
  })

  it("finds a position for every path of any document", () => {
    const pathsOf = (value: unknown, keys: ReadonlyArray<string | number>): Array<string> => [
      jsonPath(keys),
      ...(Array.isArray(value)
        ? value.flatMap((item, index) => pathsOf(item, [...keys, index]))
        : typeof value === "object" && value !== null
          ? Object.entries(value).flatMap(([key, item]) => pathsOf(item, [...keys, key]))
          : [])
    ]
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
        const text = JSON.stringify(value, null, 2)
        const { document, place } = parsed(text)
        const lines = text.split("\n")
        const places = pathsOf(document, []).map((path) => place({ path, message: "" }))
        for (const { column, line } of places) {
          assert.match(lines[line - 1]?.slice(column - 1) ?? "", /^\S/)
        }
        // Indented JSON has one line for each value: no two paths share a line.
        assert.lengthOf(new Set(places.map(({ line }) => line)), places.length)
      })
    )
  })

  it("ignores a byte order mark and carriage returns in positions", () => {
    const { place } = parsed('\uFEFF{\r\n  "a": 1\r\n}')
    assert.deepInclude(place({ path: "a", message: "" }), { line: 2, column: 3 })
  })
})

describe("a config file with malformed JSON", () => {
  it("reports malformed JSON with the position and the expected token", () => {
    assert.deepInclude(syntax('{\n  "a": x\n}'), { line: 2, column: 8 })
    assert.deepInclude(syntax('{\n  "a" 1\n}'), { line: 2, column: 7 })
    assert.deepInclude(syntax(""), { line: 1, column: 1 })
    assert.match(
      syntax('{ "a": 1, }').message,
      /^is not JSON: Expected double-quoted property name$/
    )
    assert.match(syntax("x".repeat(9)).message, /^is not JSON: Unexpected token 'x'$/)
    assert.isString(syntax("[".repeat(100_000)).message)
  })
})

describe("a config file", () => {
  it("refuses a duplicate name in a config file", () => {
    const text = parsed('{ "features": { "saves": true,\n "saves": false } }')
    const [issue] = Result.getOrThrow(Result.flip(validateConfig(text)))
    assert.deepInclude(issue, { path: "features.saves", line: 2, column: 2 })
  })

  it("refuses a config file above the size limit of the service", () => {
    const title = "x".repeat(262_144)
    const issues = Result.getOrThrow(Result.flip(validateConfig(parsed(`{ "title": "${title}" }`))))
    assert.match(issues[0]?.message ?? "", /^is too large/)
    // $schema is not sent, so it does not count.
    assert.isTrue(Result.isSuccess(validateConfig(parsed(`{ "$schema": "${title}" }`))))
  })
})

describe("a diff", () => {
  const lines = (before: unknown, after: unknown) =>
    diffLines(
      { name: "old", document: JSON.parse(JSON.stringify(before)) },
      { name: "new", document: JSON.parse(JSON.stringify(after)) }
    )

  it("lists the removed and added lines of a diff under both names", () => {
    assert.deepStrictEqual(lines({ b: 1, a: [1, 2] }, { a: [1, 3], b: 1 }), [
      "--- old",
      "+++ new",
      "@@ -1,7 +1,7 @@",
      " {",
      '   "a": [',
      "     1,",
      "-    2",
      "+    3",
      "   ],",
      '   "b": 1',
      " }"
    ])
  })

  it("prints an empty diff if and only if no path changed", () => {
    const member = fc.dictionary(fc.constantFrom("a", "b", "toString", "__proto__"), fc.nat(2))
    fc.assert(
      fc.property(
        fc.record({ x: member, y: member }),
        fc.record({ x: member, y: member }),
        (a, b) => {
          const [before, after] = [JSON.parse(JSON.stringify(a)), JSON.parse(JSON.stringify(b))]
          assert.strictEqual(lines(a, b).length === 0, changedPaths(before, after).length === 0)
        }
      )
    )
  })
})
