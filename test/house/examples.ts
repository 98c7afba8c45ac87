/** Examples of the house rules: source code that a rule refuses, and the problems that it must report. */
import { assert } from "@effect/vitest"
import { parse, type Problem, type Source } from "./source.ts"

/** An example of a file. */
export const source = (path: string, text: string): Source => parse({ path, text })

/** Asserts that a rule reports exactly these problems: path, line and message. */
export const refuses = (
  problems: ReadonlyArray<Problem>,
  ...expected: ReadonlyArray<string>
): void =>
  assert.deepStrictEqual(
    problems.map(({ line, message, path }) => `${path}:${line} ${message}`),
    [...expected]
  )
