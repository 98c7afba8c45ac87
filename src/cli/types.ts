/** `svc types`: writes the types of a game from its config file. */
import { Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { exitCodes, Failure, usageFailure } from "./failures.ts"
import { defaultFile, fileArgument, openValid, readText, switchFlag, writeText } from "./files.ts"
import { gameTypes } from "./game-types.ts"
import { printResult } from "./output.ts"

const stale = (out: string, file: string, hint: string) =>
  new Failure({
    exitCode: exitCodes.no,
    code: "types_differ",
    message: `${out} does not match ${file}.`,
    hints: [`${hint}   writes it`]
  })

export const typesCommand = Command.make(
  "types",
  {
    file: fileArgument,
    out: Flag.String("out").pipe(
      Flag.withAlias("o"),
      Flag.withDescription("The file to write, ending in .d.ts (default: svc.types.d.ts)"),
      Flag.withDefault("svc.types.d.ts")
    ),
    check: switchFlag(
      "check",
      "Write nothing, and exit with 1 if the file does not match the config"
    )
  },
  Effect.fn(function* ({ check, file, out }) {
    if (!out.endsWith(".d.ts")) {
      return yield* usageFailure(`${out} is no declaration file: its name must end in .d.ts.`)
    }
    const { config } = yield* openValid(file)
    const text = gameTypes(config, file)
    const changed = (yield* readText(out)) !== text
    if (check && changed) {
      const named = file === defaultFile ? "" : ` ${file}`
      return yield* stale(out, file, `svc types${named} --out ${out}`)
    }
    if (changed) yield* writeText(out, text)
    const said = changed ? `Wrote ${out} from ${file}.` : `${out} matches ${file}.`
    yield* printResult({ file, out, changed }, [said])
  })
).pipe(
  Command.withDescription(
    "Write types of modes, stats and providers from a config file, and a client that knows them"
  ),
  Command.withExamples([
    { command: "svc types", description: "svc.types.d.ts, from svc.config.json" },
    { command: "svc types --check", description: "Fail in CI when it is out of date" }
  ])
)
