/**
 * Reporter that prints failures only, each with all that its test logged. People see how far the run is, and at its
 * end the slowest files and why tests were skipped. A test that this machine cannot run has its reason in its name, or
 * in that of its suite: `plays in a page (skipped: needs Chromium)`.
 */
import {
  DefaultReporter,
  type SerializedError,
  type TestCase,
  type TestModule,
  type TestModuleState,
  type TestRunEndReason,
  type TestSpecification
} from "vitest/node"

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

/** A run without a terminal prints as many lines of progress. */
const steps = 10
const slowestCount = 10
const slowMillis = 5000

export class FailuresReporter extends DefaultReporter {
  #startSeconds = 0
  #total = 0
  #done = 0
  #failed = 0

  override onTestRunStart(specifications: ReadonlyArray<TestSpecification>): void {
    super.onTestRunStart(specifications)
    this.#startSeconds = process.uptime()
    this.#total = specifications.length
    this.#done = 0
    this.#failed = 0
  }

  override onTestModuleEnd(module: TestModule): void {
    super.onTestModuleEnd(module)
    this.#done++
    if (module.state() === "failed") this.#failed++
    // A terminal shows the summary of the default reporter, which moves.
    if (!this.isTTY) this.#printProgress()
  }

  #printProgress(): void {
    const stepOf = (done: number) => Math.floor((done * steps) / this.#total)
    if (stepOf(this.#done) === stepOf(this.#done - 1)) return
    const seconds = Math.round(process.uptime() - this.#startSeconds)
    this.log(` ${this.#done} of ${this.#total} files, ${this.#failed} failed, ${seconds} s`)
  }

  protected override printTestModule(module: TestModule): void {
    if (module.state() === "failed" || this.renderSucceed) super.printTestModule(module)
  }

  protected override printTestCase(moduleState: TestModuleState, test: TestCase): void {
    if (test.result().state === "failed" || this.renderSucceed) {
      super.printTestCase(moduleState, test)
    }
  }

  override onTestRunEnd(
    modules: ReadonlyArray<TestModule>,
    errors: ReadonlyArray<SerializedError>,
    reason: TestRunEndReason
  ): void {
    super.onTestRunEnd(modules, errors, reason)
    const slow = modules
      .map((module) => ({ module, millis: module.diagnostic().duration }))
      .filter(({ millis }) => millis >= slowMillis)
      .toSorted((a, b) => b.millis - a.millis)
    for (const { millis, module } of slow.slice(0, slowestCount)) {
      this.log(`${Math.round(millis / 1000)} s: ${module.relativeModuleId}`)
    }
    const skipped = modules.flatMap(({ children }) => Array.from(children.allTests("skipped")))
    for (const [why, tests] of Map.groupBy(skipped, reasonOf)) {
      if (why !== undefined) this.log(`${tests.length} skipped: ${why}`)
    }
  }
}
