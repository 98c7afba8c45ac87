/**
 * The faults of clients by hand: `npm run test:faults`, with `--seed`, `--rounds` for the first rounds
 * alone, and `--short` for the run of `npm test`.
 *
 *   node test/features/functions/client-faults.ts --seed 8
 */
import { randomInt } from "node:crypto"
import { parseArgs } from "node:util"
import { NodeServices } from "@effect/platform-node"
import { Console, Effect, Redacted } from "effect"
import { cloneDatabase, testServer } from "#testing/database"
import { runScript } from "../../chaos/script.ts"
import { clientFaults, forms } from "../../support/passing/client-faults.ts"

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: String(randomInt(1_000_000)) },
    rounds: { type: "string", default: "1000" },
    short: { type: "boolean", default: false }
  }
})

const run = Effect.gen(function* () {
  const seed = Number(values.seed)
  yield* Console.log(`seed ${seed}`)
  const databaseUrl = Redacted.value(yield* cloneDatabase(yield* testServer))
  const say = (line: string) => process.stdout.write(`${line}\n`)
  const form = forms[values.short ? "short" : "long"]
  const { findings, trials } = yield* clientFaults({
    ...form,
    seed,
    databaseUrl,
    roundsMax: Number(values.rounds),
    say
  })
  yield* Console.log(`${JSON.stringify(trials)}: ${findings.length} findings (seed ${seed})`)
  for (const finding of findings) yield* Console.log(finding)
  process.exitCode = findings.length > 0 ? 1 : 0
})

runScript(run.pipe(Effect.scoped, Effect.provide(NodeServices.layer)))
