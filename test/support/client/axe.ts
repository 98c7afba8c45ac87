/** Accessibility checks of a page by axe. */
import axe from "axe-core"
import type { Page } from "playwright-core"

/** What axe finds wrong in a page: the rule and the first element of each. */
export const violationsOf = async (page: Page): Promise<ReadonlyArray<string>> => {
  // The policy of the page allows no foreign script; evaluated code is the debugger's.
  await page.evaluate(axe.source)
  const found: unknown = await page.evaluate(`axe.run().then(({ violations }) =>
    violations.map(({ id, nodes }) => id + ": " + nodes[0].html + " " + nodes[0].failureSummary))`)
  return Array.isArray(found) ? found.map(String) : ["axe returned no result"]
}
