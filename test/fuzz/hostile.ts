/** What nobody means well who sends it: texts, numbers and values that have broken other services. */
import type { Chance } from "../simulation/random.ts"
import { type Json, Literal, members } from "./json.ts"

/** Texts that some parser, database, log or page takes for something else. */
export const texts: ReadonlyArray<string> = [
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

/** Literals that are JSON and mean trouble, and some that are none. */
const literals = [
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

const notJson = [
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

const simple: ReadonlyArray<Json> = [null, true, false, 0, -1, 1.5, "", "x", [], members({})]

/** So deep that a careless reader runs out of stack. */
export const deep = (chance: Chance, levels: number): string =>
  chance.happens(0.5)
    ? `${"[".repeat(levels)}${"]".repeat(levels)}`
    : `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`

/** A text of the list, and now and then one that no list has. */
export const text = (chance: Chance): string =>
  chance.happens(0.1)
    ? Buffer.from(chance.bytes(chance.integer(1, 40))).toString("utf16le")
    : (chance.pick(texts) ?? "")

/** A value that nobody expects where it stands. */
export const value = (chance: Chance): Json => {
  const die = chance.fraction()
  if (die < 0.35) return chance.pick(simple) ?? null
  if (die < 0.65) return text(chance)
  if (die < 0.9) return new Literal(chance.pick(literals) ?? "0")
  if (die < 0.94) return new Literal(chance.pick(notJson) ?? "0")
  if (die < 0.97) return new Literal(deep(chance, chance.integer(30, 200)))
  return Array.from({ length: chance.integer(2, 2000) }, () => 0)
}
