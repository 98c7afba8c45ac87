/** The README keeps up: every setting is in its table. */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { variables } from "#server/platform/settings/variables"

describe("the README", () => {
  const text = readFileSync(new URL("../../README.md", import.meta.url), "utf8")

  it.each(Object.keys(variables))("lists the setting %s", (name) => {
    assert.include(text, `| \`${name}\``)
  })
})
