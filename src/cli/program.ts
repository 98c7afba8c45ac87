/** The program of `svc`: commands, error output and exit codes. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, Effect, Layer, Stdio } from "effect"
import { CliConfig, CliOutput, Command, GlobalFlag } from "effect/cli"
import { FetchHttpClient } from "effect/http"
import manifest from "../../package.json" with { type: "json" }
import { agentCommand } from "./agent.ts"
import { backupCommands } from "./backup.ts"
import { configCommand } from "./config.ts"
import { hostingCommands } from "./deploy.ts"
import { devCommand } from "./dev.ts"
import { doctorCommand } from "./doctor.ts"
import { domainsCommand } from "./domains.ts"
import { Exit, exitCodes, Failure } from "./failures.ts"
import { featureCommand } from "./feature.ts"
import { featuresCommand } from "./features.ts"
import { initCommand } from "./init.ts"
import { functionsCommand } from "./functions.ts"
import { Json, note, report } from "./output.ts"
import { operatorCommand, operatorWords, runOperator } from "./operator.ts"
import { seedCommand } from "./seed.ts"
import { shareCommand } from "./share.ts"
import { signInCommands } from "./sign-in.ts"
import { typesCommand } from "./types.ts"
import { Store } from "./store.ts"

const description = `Work with a player backend from the command line.

svc finds a service that was started in this folder (npm start). For others: svc link, svc login.

ENVIRONMENT
  SVC_URL, SVC_SECRET_KEY   the service and a secret key, for CI (no link or login needed)
  SVC_PUBLISHABLE_KEY       the key of players, for doctor and seed
  SVC_CONFIG_DIR            where svc stores the user's keys (default: ~/.config/svc)
  NO_COLOR                  disables colours

EXIT CODES
  0  success (with config diff --exit-code: no difference)
  1  the config is invalid, differs, or was changed by somebody else; a check of doctor failed;
     the service refused what was asked
  2  the command line, the link or a file is invalid, or the request made of them
  3  the service refused the key, or there is none
  4  the service is unreachable or busy, or its response is unexpected`

const svc = Command.make("svc").pipe(
  Command.withDescription(description),
  Command.withSubcommands([
    initCommand,
    devCommand,
    ...signInCommands,
    configCommand,
    typesCommand,
    featuresCommand,
    featureCommand,
    shareCommand,
    functionsCommand,
    ...hostingCommands,
    domainsCommand,
    seedCommand,
    doctorCommand,
    ...backupCommands,
    operatorCommand,
    agentCommand
  ]),
  Command.withGlobalFlags([Json])
)

/** Prints errors of the command line on standard error, in a few lines. */
const presenter: CliOutput.Presenter = {
  present: Effect.fnUntraced(function* (event) {
    if (event._tag !== "InvalidInvocation") return yield* CliOutput.defaultPresenter.present(event)
    const text = CliOutput.defaultFormatter({ colors: false }).formatErrors(event.errors).trim()
    yield* note(...text.split("\n"), "", `${event.commandPath.join(" ")} --help shows the usage.`)
  })
}

/** Reports a defect of the CLI itself. The cause never contains a key. */
const fault = (defect: unknown) =>
  note(
    `error: svc ${manifest.version} failed with an internal error. Please report it.`,
    ...Cause.pretty(Cause.die(defect)).split("\n")
  )

const usage = new Exit({ exitCode: exitCodes.usage })

const run = Effect.gen(function* () {
  const { args } = yield* Stdio.Stdio
  const words = yield* args
  const json = words.some((arg) => arg === "--json" || arg === "--json=true")
  const ofOperator = operatorWords(words)
  const command =
    ofOperator === undefined
      ? Command.run(svc, { version: manifest.version })
      : runOperator(ofOperator)
  yield* command.pipe(
    Effect.tapError((error) => (error instanceof Failure ? report(error, json) : Effect.void)),
    Effect.catchTag("ShowHelp", ({ errors }) =>
      errors.length > 0 ? Effect.fail(usage) : Effect.void
    ),
    Effect.tapDefect(fault)
  )
})

const Services = Store.layer.pipe(
  Layer.provideMerge(NodeServices.layer),
  Layer.provideMerge(FetchHttpClient.layer),
  Layer.provideMerge(CliOutput.layerPresenter(presenter)),
  Layer.provideMerge(
    CliConfig.layer({ builtIns: [GlobalFlag.Help, GlobalFlag.Version, GlobalFlag.Completions] })
  )
)

/** Runs the command line of the process. What it fails with has the exit code, and is reported. */
export const program = run.pipe(Effect.provide(Services))
