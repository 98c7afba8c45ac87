/**
 * The fuzz run by hand: `npm run test:fuzz`.
 *
 *   npm run test:fuzz -- --seed 8 --requests 1000 --frames 10000 --rounds 2 --lingering 32
 */
import { randomInt } from "node:crypto"
import { parseArgs } from "node:util"
import { Console, Effect } from "effect"
import { runScript } from "../chaos/script.ts"
import { fuzz } from "./run.ts"

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: String(randomInt(1_000_000)) },
    requests: { type: "string", default: "100000" },
    frames: { type: "string", default: "1000000" },
    rounds: { type: "string", default: "3" },
    /** Rooms, channels and sessions that may linger when memory is measured. */
    lingering: { type: "string", default: "0" },
    /** Megabytes that memory may grow in a round. */
    growth: { type: "string", default: "12" }
  }
})

const main = Effect.gen(function* () {
  yield* Console.log(`seed ${values.seed}`)
  const found = yield* fuzz({
    seed: Number(values.seed),
    requests: Number(values.requests),
    frames: Number(values.frames),
    rounds: Number(values.rounds),
    lingeringMax: Number(values.lingering),
    growthMaxBytes: Number(values.growth) * 1e6,
    say: (line) => process.stdout.write(`${line}\n`)
  })
  yield* Console.log(`findings: ${found.length} (seed ${values.seed})`)
  for (const what of found) yield* Console.log(what)
  process.exitCode = found.length > 0 ? 1 : 0
})

runScript(main)
