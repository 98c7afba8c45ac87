/** Checks that the config documents shown in the documentation are valid. */
import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { decodeConfig } from "#rpc/config-document/document"

const root = join(import.meta.dirname, "../..")

/** Every fenced JSON block with a `version`, and the page that shows it. */
const documents = globSync(["README.md", "docs/**/*.md"], { cwd: root })
  .toSorted()
  .flatMap((page) =>
    Array.from(
      readFileSync(join(root, page), "utf8").matchAll(/^```json\n([^]*?)^```$/gm),
      ([, text = ""]) => ({ page, text })
    ).filter(({ text }) => text.includes('"version"'))
  )

describe("the config documents of the documentation", () => {
  it("finds the config documents of the documentation", () => {
    assert.isAtLeast(documents.length, 4)
  })

  it.each(documents)("holds valid config documents in $page", ({ text }) => {
    const decoded = decodeConfig(JSON.parse(text))
    assert.strictEqual(Result.isFailure(decoded) ? decoded.failure.message : "", "")
  })
})
