/**
 * Reporter that ends a run with why tests were skipped. A test that this machine cannot run has its reason in
 * its name, or in that of its suite: `plays in a page (skipped: needs Chromium)`.
 */
import type { Reporter, TestCase, TestModule } from "vitest/node"

const withReason = /\(skipped:? (.*)\)$/

/** Undefined for a test that the command line left out. */
const reasonOf = ({ fullName, options }: TestCase): string | undefined => {
  const reason = fullName
    .split(" > ")
    .map((name) => withReason.exec(name)?.[1])
    .find((found) => found !== undefined)
  return (
    reason ?? (options.tags?.includes("long") === true ? "npm run test:long runs them" : undefined)
  )
}

export class SkippedReporter implements Reporter {
  onTestRunEnd(modules: ReadonlyArray<TestModule>): void {
    const skipped = modules.flatMap(({ children }) => Array.from(children.allTests("skipped")))
    for (const [reason, tests] of Map.groupBy(skipped, reasonOf)) {
      if (reason !== undefined) process.stdout.write(`${tests.length} skipped: ${reason}\n`)
    }
  }
}
