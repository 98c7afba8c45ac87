/**
 * Test projects: `house` (the rules of this repository), `service` (everything else, on one shared
 * Postgres), `simulation`, `chaos`, `fuzz`, `packages`, `functions`, `dashboard`, `calls`, `hosting` and `demo`.
 * Simulation, chaos and fuzz have a short form, for `npm test`, and a long one
 * (`vitest.long.config.ts`). Of the service, tags name the tests of the long form. The simulation takes
 * every core, so it runs alone, and so do chaos and fuzz in their long form. In their short form they
 * mostly wait, and run beside the service.
 */
import { existsSync } from "node:fs"
import { defineConfig } from "vitest/config"
import { BaseSequencer, type TestSpecification } from "vitest/node"
import { FailuresReporter } from "./test/support/failures-reporter.ts"

const house = "test/house/*.test.ts"
const simulation = "test/simulation/*.test.ts"
const chaos = "test/chaos/chaos.test.ts"
const fuzz = "test/fuzz/fuzz.test.ts"
const packages = "test/packages/*.test.ts"
const functions = "test/features/functions/long/*.test.ts"
const dashboard = "test/dashboard/views/*.test.ts"
const calls = "test/features/voice/long/*.test.ts"
const demo = "test/demo/long/*.test.ts"
const hosting = "test/features/hosting/long/*.test.ts"
const globalSetup = existsSync("test/support/global-setup.ts")
  ? ["test/support/global-setup.ts"]
  : []

/** Tests that take several processes, a frozen one or many seconds are `long`. */
const tags = [
  { name: "long", description: "`npm test` leaves it out, `npm run test:long` runs it" },
  { name: "sized", description: "both run it, `npm run test:long` with more rounds" }
]

/** A test that hangs ends here. No test may depend on it: a busy machine is twenty times as slow. */
const hangMillis = 300_000

/** Starts the fuzz and chaos tests first: they last longest and mostly wait, which others can use. */
class LongestFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    const sorted = await BaseSequencer.prototype.sort.call(this, files)
    const isFirst = ({ moduleId }: TestSpecification) =>
      [fuzz, chaos].some((path) => moduleId.endsWith(path))
    return sorted.toSorted((a, b) => Number(isFirst(b)) - Number(isFirst(a)))
  }
}

/** A project that `npm test` leaves out. */
const longOnly = (name: string, include: string, groupOrder: number, setup = globalSetup) => ({
  extends: true as const,
  test: { name, include: [include], sequence: { groupOrder }, globalSetup: setup }
})

/** A project that starts what it needs by itself, and in the short form runs beside the service. */
const besideService = (name: string, include: string, groupOrder: number) => ({
  extends: true as const,
  test: { name, include: [include], sequence: { groupOrder } }
})

export const configOf = (form: "short" | "long") =>
  defineConfig({
    test: {
      environment: "node",
      reporters: [new FailuresReporter()],
      // What a passing test logs is dropped; `--silent=false` shows it.
      silent: "passed-only",
      tags,
      pool: "forks",
      // Twice the cores, since many tests wait: fuzz, chaos, voice, and those of other processes.
      maxWorkers: 4,
      sequence: { sequencer: LongestFirst },
      testTimeout: hangMillis,
      hookTimeout: hangMillis,
      provide: { form },
      projects: [
        { extends: true, test: { name: "house", include: [house] } },
        {
          extends: true,
          test: {
            name: "service",
            include: ["test/**/*.test.ts"],
            exclude: [
              house,
              simulation,
              chaos,
              fuzz,
              packages,
              functions,
              dashboard,
              calls,
              demo,
              hosting,
              "test/bench/peers/**",
              "**/node_modules/**"
            ],
            // Files share a worker and its modules: importing Effect for each took a quarter of the time.
            isolate: false,
            globalSetup
          }
        },
        {
          extends: true,
          test: {
            name: "simulation",
            include: [simulation],
            sequence: { groupOrder: 1 },
            globalSetup
          }
        },
        longOnly("dashboard", dashboard, 5),
        longOnly("packages", packages, 4, ["test/support/packages/build.ts"]),
        longOnly("calls", calls, 6),
        longOnly("functions", functions, 7),
        longOnly("hosting", hosting, 8),
        longOnly("demo", demo, 9),
        besideService("chaos", chaos, form === "short" ? 0 : 2),
        besideService("fuzz", fuzz, form === "short" ? 0 : 3)
      ]
    }
  })

export default configOf("short")
