/**
 * The chaos run by hand: `npm run test:chaos`, with `--seed`, `--rounds` and `--fault` (several).
 *
 *   node test/chaos/chaos.ts --fault kill --fault freeze --rounds 2
 */
import { randomInt } from "node:crypto"
import { parseArgs } from "node:util"
import { NodeServices } from "@effect/platform-node"
import { Console, Effect, Random } from "effect"
import { SecureRandom } from "effect/crypto"
import { faultNames, isFault } from "./faults.ts"
import { checkOut } from "../support/release.ts"
import { forgettableMillis } from "./load.ts"
import { type Release, rollingUpgrade } from "./rolling.ts"
import { chaos, type Outcome } from "./run.ts"
import { runScript } from "./script.ts"

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: String(randomInt(1_000_000)) },
    rounds: { type: "string", default: "3" },
    fault: { type: "string", multiple: true },
    short: { type: "boolean", default: false },
    /** Prints the output of the runners. */
    logs: { type: "boolean", default: false },
    /** Runs a rolling upgrade instead of faults. */
    upgrade: { type: "boolean", default: false },
    /** Runs it from this commit to the current sources, and back. */
    from: { type: "string" }
  }
})

const report = ({ rows, seed, violations }: Outcome): string =>
  [
    "",
    "milliseconds without a completed step, and from the repair to the first completed step:",
    "fault | apps | silence median | worst | back median | worst",
    ...rows.map(({ back, fault, kind, silence }) =>
      [fault, kind, silence.median, silence.worst, back.median, back.worst].join(" | ")
    ),
    "",
    `violations: ${violations.length} (seed ${seed})`,
    ...new Set(violations)
  ].join("\n")

const sizes = { rooms: 6, players: 3, matched: 6, talkers: 4, savers: 4, counters: 4 }
const say = (line: string): void => console.log(line)

const current: Release = { name: "current", main: undefined }

const upgrade = Effect.gen(function* () {
  const { from } = values
  const older = from === undefined ? current : { name: "older", main: yield* checkOut(from) }
  const releases = [older, current, ...(from === undefined ? [] : [older])] as const
  const outcome = yield* rollingUpgrade({ size: 3, sizes, say, releases })
  const { mixed, noticed, starved, violations, worst } = outcome
  for (const moment of mixed) yield* Console.log(JSON.stringify(moment))
  yield* Console.log(`longest silence ${worst} ms; longest wait for a core ${starved} ms`)
  yield* Console.log(`violations: ${violations.length}; noticed: ${noticed.length}`)
  for (const what of [...violations, ...noticed]) yield* Console.log(what)
  process.exitCode = violations.length + noticed.length > 0 ? 1 : 0
})

const strikes = Effect.gen(function* () {
  const seed = Number(values.seed)
  const chosen = (values.fault ?? faultNames).filter(isFault)
  const rounds = Array.from({ length: Number(values.rounds) }, () => chosen).flat()
  yield* Console.log(`seed ${seed}`)
  const outcome = yield* chaos({
    seed,
    short: values.short,
    faults: yield* Random.withSeed(Random.shuffle(rounds), seed),
    say,
    ...(values.logs ? { logs: (printed) => say(printed.join("\n")) } : {}),
    retries: Number.POSITIVE_INFINITY,
    forgetMillis: forgettableMillis,
    sizes
  })
  yield* Console.log(report(outcome))
  process.exitCode = outcome.violations.length > 0 ? 1 : 0
})

runScript(
  (values.upgrade ? upgrade : strikes).pipe(
    Effect.scoped,
    Effect.provide(NodeServices.layer),
    Effect.provide(SecureRandom.layerWebCrypto)
  )
)
