/**
 * Runner processes of two releases that cannot work together: both say so, and the older ones drain.
 * @module-tag long
 */
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { TestDatabase } from "#testing/app"
import { type Runner, startRunner } from "#testing/runners"
import { newerRelease } from "../support/newer-release.ts"
import { DatabaseLive } from "../support/service.ts"
import { dataFolder } from "../support/data-folder.ts"

const newerMain = fileURLToPath(new URL("../support/newer-release.ts", import.meta.url))
const draining = "Draining, since newer runners replace this one"

/** The log lines of a runner that name both releases. */
const refusals = (runner: Runner): ReadonlyArray<string> =>
  runner
    .output()
    .split("\n")
    .filter((line) => /cannot work with/.test(line))

const patience = { times: 1200, schedule: Schedule.spaced(50) }

const until = (condition: () => boolean, what: () => string) =>
  Effect.suspend(() => (condition() ? Effect.void : Effect.fail(what()))).pipe(
    Effect.retry(patience)
  )

/**
 * Waits until a runner is ready. A single newer runner is not: the older ones are the larger group of those that
 * reach each other, so it owns no shards until a second one comes or they have left.
 */
const untilReady = ({ output, url }: Runner) =>
  Effect.promise(() =>
    fetch(`${url}/readyz`).then(
      ({ status }) => status === 200,
      () => false
    )
  ).pipe(
    Effect.filterOrFail((ready) => ready, output),
    Effect.retry(patience)
  )

const hasExited = ({ pid }: Runner): boolean => {
  try {
    return !process.kill(pid, 0)
  } catch {
    return true
  }
}

describe("runner processes with different cluster protocols", () => {
  it.live(
    "logs one line per runner of two cluster protocols, and drains the older once half are newer",
    () =>
      Effect.gen(function* () {
        const { url: databaseUrl } = yield* TestDatabase
        const dataDir = yield* dataFolder("releases-")
        const older = [
          yield* startRunner({ databaseUrl, dataDir }),
          yield* startRunner({ databaseUrl, dataDir })
        ]
        const startNewer = startRunner({ databaseUrl, dataDir, main: newerMain })
        const first = yield* startNewer
        for (const runner of [...older, first]) {
          yield* until(() => refusals(runner).length > 0, runner.output)
          const [line = "", ...others] = refusals(runner)
          assert.deepStrictEqual(others, [], "one line each")
          assert.include(line, `cannot work with ${newerRelease.release} (cluster protocol`)
          assert.include(line, "replace all runners by the newer release")
        }
        for (const runner of older) {
          yield* untilReady(runner)
          assert.notInclude(runner.output(), draining)
        }
        const second = yield* startNewer
        for (const runner of older) {
          yield* until(() => hasExited(runner), runner.output)
          assert.include(runner.output(), draining)
        }
        for (const runner of [first, second]) {
          yield* untilReady(runner)
          assert.notInclude(runner.output(), draining)
        }
      }).pipe(Effect.scoped, Effect.provide(DatabaseLive))
  )
})
