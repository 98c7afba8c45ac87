/**
 * The fuzz run at full length: `npm run test:fuzz`, with `--seed`, `--requests` and `--frames`.
 *
 *   node test/fuzz/fuzz.ts --seed 8 --requests 1000 --frames 10000 --hasty
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
    /** Does not wait for rooms to be forgotten. */
    hasty: { type: "boolean", default: false }
  }
})

const main = Effect.gen(function* () {
  yield* Console.log(`seed ${values.seed}`)
  const found = yield* fuzz({
    seed: Number(values.seed),
    requests: Number(values.requests),
    frames: Number(values.frames),
    patient: !values.hasty,
    say: (line) => process.stdout.write(`${line}\n`)
  })
  yield* Console.log(`found: ${found.length} (seed ${values.seed})`)
  for (const what of found) yield* Console.log(what)
  process.exitCode = found.length > 0 ? 1 : 0
})

runScript(main)
