/** Checks that every link and anchor of the Markdown files leads somewhere, and every page is reached. */
import { existsSync, globSync, readFileSync } from "node:fs"
import { dirname, join, normalize } from "node:path"
import { assert, describe, it } from "@effect/vitest"

const root = join(import.meta.dirname, "../..")
const readmeMaxLines = 200

const files = globSync(["*.md", "{docs,rpc,test}/**/*.md"], {
  cwd: root,
  exclude: ["**/node_modules/**"]
}).toSorted()
const textOf = (file: string) => readFileSync(join(root, file), "utf8")

/** The text without fenced code blocks, whose content is not Markdown. */
const proseOf = (text: string) => text.replace(/^```[^]*?^```$/gm, "")

/** The anchors of a page's headings, as GitHub and other renderers derive them. */
const anchorsOf = (text: string): ReadonlySet<string> =>
  new Set(
    Array.from(proseOf(text).matchAll(/^#{1,6} (.+)$/gm), ([, heading = ""]) =>
      heading
        .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\s_-]/gu, "")
        .trim()
        .replaceAll(" ", "-")
    )
  )

/** Links whose file or anchor does not exist. */
const brokenLinks = (file: string, text: string): ReadonlyArray<string> =>
  Array.from(proseOf(text).matchAll(/\]\(([^)\s]+)\)/g), ([, link = ""]) => link)
    .filter((link) => !/^[a-z]+:/.test(link))
    .filter((link) => {
      const [path = "", anchor] = link.split("#")
      const target = path === "" ? file : normalize(join(dirname(file), path))
      if (!existsSync(join(root, target))) return true
      return anchor !== undefined && !anchorsOf(textOf(target)).has(anchor)
    })

describe("the documentation", () => {
  it("finds the README, the guides and the pages of test folders among the documentation", () => {
    for (const file of ["README.md", "docs/architecture.md", "docs/guides/rooms.md"]) {
      assert.include(files, file)
    }
    assert.include(files, "test/bench/README.md")
  })

  it.each(files)("finds no broken link in %s", (file) => {
    assert.deepStrictEqual(brokenLinks(file, textOf(file)), [])
  })

  it("finds a broken link and a broken anchor", () => {
    const text = "[a](gone.md) [b](README.md#gone) [c](README.md#start) [d](https://example.com/x)"
    assert.deepStrictEqual(brokenLinks("README.md", text), ["gone.md", "README.md#gone"])
  })

  it("reaches every guide and operations page from the README", () => {
    const readme = textOf("README.md")
    const pages = files.filter((file) => /^docs\/(?:guides|operations)\//.test(file))
    assert.isAbove(pages.length, 15)
    for (const page of pages) assert.include(readme, `(${page})`)
  })

  it(`keeps the README within ${readmeMaxLines} lines`, () => {
    assert.isAtMost(textOf("README.md").trimEnd().split("\n").length, readmeMaxLines)
  })
})
