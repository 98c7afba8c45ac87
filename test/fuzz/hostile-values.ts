/** Texts, numbers and values that have broken other services. */
import type { Chance } from "../simulation/random.ts"
import { type Json, RawJson, members } from "./json.ts"

/** Texts that a parser, database, log or page may misread. */
export const hostileTexts: ReadonlyArray<string> = [
  "",
  " ",
  "\u0000",
  "a\u0000b",
  "\r\nset-cookie: a=b",
  "\u001b[2J",
  "\u007f\u0080\u009f",
  "\u200b\u200e\u202e\u2066",
  "\ufeff\ufffe\uffff",
  "é",
  "e\u0301".repeat(40),
  "Z\u0335\u0336".repeat(100),
  "😀".repeat(33),
  "\u{10ffff}",
  "\u1680\u3000\u2028\u2029",
  "ß".repeat(32),
  "ﬃ".repeat(22),
  "'; drop table players; --",
  "' or 1=1 --",
  "%' and pg_sleep(9)--",
  "$1::int",
  "\\",
  '"',
  "%",
  "_%",
  "<script>alert(1)</script>",
  "<img src=x onerror=alert(1)>",
  "${7*7}{{7*7}}",
  "../../../../etc/passwd",
  "..\\..\\windows",
  "file:///etc/passwd",
  "http://169.254.169.254/latest/meta-data",
  "javascript:alert(1)",
  "https://user:pass@localhost:3000@evil.example/",
  "__proto__",
  "constructor",
  "prototype",
  "toString",
  "hasOwnProperty",
  "then",
  "null",
  "undefined",
  "NaN",
  "-1",
  "0",
  "1e999",
  "9007199254740993",
  "99999999999999999999999999",
  "2026-02-30T25:61:61Z",
  "pl_",
  "pl_00000000000000000000000000",
  "pl_ZZZZZZZZZZZZZZZZZZZZZZZZZZ",
  "prj_01",
  "x".repeat(65),
  "x".repeat(257),
  "x".repeat(5000)
]

/** Valid JSON that parsers disagree about. */
const hostileLiterals = [
  "-0",
  "1e400",
  "-1e400",
  "1e-400",
  "9007199254740992",
  "9007199254740993",
  "-9007199254740993",
  "2147483648",
  "4294967296",
  "9223372036854775808",
  "0.1",
  "1.0000000000000000000000001",
  `1${"0".repeat(400)}`,
  '"\\ud800"',
  '"\\udc00\\ud800"',
  '"\\u0000"',
  '{"__proto__":{"isAdmin":true}}',
  '{"constructor":{"prototype":{"isAdmin":true}}}',
  '{"toJSON":1,"then":1,"length":-1}',
  '{"":""}',
  '{"a":1,"a":2}',
  '"\\/\\b\\f\\n\\r\\t"'
] as const

const invalidLiterals = [
  "NaN",
  "Infinity",
  "undefined",
  "01",
  "+1",
  ".5",
  "'a'",
  '"\u0001"',
  "[1,]",
  "/**/1"
]

const simpleValues: ReadonlyArray<Json> = [null, true, false, 0, -1, 1.5, "", "x", [], members({})]

/** Nesting that overflows the stack of a recursive parser. */
export const deeplyNested = (chance: Chance, levels: number): string =>
  chance.happens(0.5)
    ? `${"[".repeat(levels)}${"]".repeat(levels)}`
    : `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`

/** A hostile text of the list or, one time in ten, random characters. */
export const hostileText = (chance: Chance): string =>
  chance.happens(0.1)
    ? Buffer.from(chance.bytes(chance.integer(1, 40))).toString("utf16le")
    : (chance.pick(hostileTexts) ?? "")

/** A random value of an unexpected type. */
export const hostileValue = (chance: Chance): Json => {
  const die = chance.fraction()
  if (die < 0.35) return chance.pick(simpleValues) ?? null
  if (die < 0.65) return hostileText(chance)
  if (die < 0.9) return new RawJson(chance.pick(hostileLiterals) ?? "0")
  if (die < 0.94) return new RawJson(chance.pick(invalidLiterals) ?? "0")
  if (die < 0.97) return new RawJson(deeplyNested(chance, chance.integer(30, 200)))
  return Array.from({ length: chance.integer(2, 2000) }, () => 0)
}
