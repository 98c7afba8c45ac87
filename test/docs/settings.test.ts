/** Checks that the settings page lists every environment variable with its default. */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { type Variable, variables } from "#server/platform/settings/variables"

const page = readFileSync(new URL("../../docs/operations/settings.md", import.meta.url), "utf8")

/** The cells of a variable's row: name, default, meaning. */
const rowOf = (name: string): ReadonlyArray<string> | undefined =>
  page
    .split("\n")
    .find((line) => line.startsWith(`| \`${name}\` `))
    ?.split("|")
    .slice(1, -1)
    .map((cell) => cell.trim())

describe("the settings page", () => {
  it.each(Object.entries<Variable>(variables))("lists %s with its default", (name, variable) => {
    const row = rowOf(name)
    assert.isDefined(row, `${name} has a row`)
    // The default of SVC_FEATURES is the list of all features.
    const shown = name === "SVC_FEATURES" ? "all" : (variable.default ?? "")
    assert.strictEqual(row?.[1]?.replaceAll("`", ""), shown)
  })

  it("lists no variable that does not exist", () => {
    const listed = Array.from(page.matchAll(/^\| `([A-Z0-9_]+)`/gm), ([, name = ""]) => name)
    assert.sameMembers(listed, Object.keys(variables))
  })
})
