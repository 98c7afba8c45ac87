/** Checks that what stands beside the cluster engine stays as small as the architecture page says. */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"

const textOf = (path: string): string =>
  readFileSync(new URL(`../../${path}`, import.meta.url), "utf8")

/** The modules that replace parts of the engine, without authentication, TLS and versions. */
const modules = ["membership", "pause-detector", "runner-link", "runner-links", "shard-locks"]

describe("the architecture page", () => {
  it("says how many lines stand beside the cluster engine at most", () => {
    const [, max = ""] =
      /beside the cluster engine[^.]*at most (\d+)\s+lines/.exec(textOf("docs/architecture.md")) ??
      []
    const counts = modules.map((name) => ({
      name,
      lines: textOf(`src/server/cluster/${name}.ts`).trimEnd().split("\n").length
    }))
    const total = counts.reduce((sum, { lines }) => sum + lines, 0)
    assert.isAtMost(total, Number.parseInt(max, 10), JSON.stringify(counts))
    assert.strictEqual(max, "800")
  })
})
