/** Accessibility checks of a page by axe. */
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import type { Page } from "playwright-core"

const source = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")

/** What axe finds wrong in a page: the rule and the first element of each. */
export const violationsOf = async (page: Page): Promise<ReadonlyArray<string>> => {
  // The policy of the page allows no foreign script; evaluated code is the debugger's.
  await page.evaluate(source)
  const found: unknown = await page.evaluate(`axe.run().then(({ violations }) =>
    violations.map(({ id, nodes }) => id + ": " + nodes[0].html + " " + nodes[0].failureSummary))`)
  return Array.isArray(found) ? found.map(String) : ["axe returned no result"]
}
