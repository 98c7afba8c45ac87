/** Starts the service, prints where it listens, and explains a failed start. */
import cluster from "node:cluster"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Cause, Console, Effect, Layer, Option } from "effect"
import { HttpServer } from "effect/http"
import { paths } from "#rpc/paths"
import { ServiceLive } from "./app.ts"
import { demoAddress } from "./demo/games.ts"
import { StartCode } from "./features/developers/sign-in-links.ts"
import { UnhandledErrors } from "./http/unhandled-errors.ts"
import { npmEnd } from "./platform/npm-parent.ts"
import { Settings } from "./platform/settings/settings.ts"
import { failStart, StartError, stopTeardown } from "./start-error.ts"
import { redactSecrets } from "./telemetry/logs.ts"

/** The address of the dashboard; in development with a code that signs in once. */
const dashboardLine = (port: number | string, code: string | undefined): string =>
  `  dashboard       http://localhost:${port}${paths.dashboard}` +
  (code === undefined ? "" : `#code=${code}`)

/** Whether `npm run start:two` started this process after its first runner, which printed the start message. */
const isFurtherRunner = (cluster.worker?.id ?? 1) > 1

/** Printed once the service accepts requests: one log line as JSON, or a short text for a terminal. */
const StartMessage = Layer.effectDiscard(
  Effect.gen(function* () {
    const { baseUrl, dashboard, dataDir, logs, production, runner, warnings } = yield* Settings
    if (isFurtherRunner && runner !== undefined && logs.format !== "json") {
      return yield* Console.log(`  runner          ${runner.host}:${runner.port}`)
    }
    const code = Option.getOrUndefined(yield* StartCode)
    for (const warning of warnings) yield* Effect.logWarning(warning)
    const { address } = yield* HttpServer.HttpServer
    const port = "port" in address ? address.port : ""
    const url = `http://localhost:${port}`
    if (logs.format === "json") return yield* Effect.logInfo(`Listening on port ${port}`)
    const demo = yield* demoAddress
    const lines = [
      `Player backend listening on ${url}`,
      `  for players     ${baseUrl}`,
      ...(dashboard === "off" ? [] : [dashboardLine(dashboard === "on" ? port : dashboard, code)]),
      ...(demo === undefined ? [] : [`  demo games      ${demo}`]),
      `  documentation   ${url}/docs`,
      ...(production ? [] : [`  project keys    ${dataDir}/dev-keys.json (project demo)`]),
      ...(runner === undefined ? [] : [`  runner          ${runner.host}:${runner.port}`]),
      "Next: README.md, section First game. Ctrl-C stops the service."
    ]
    yield* Console.log(lines.join("\n"))
  })
)

/** The process exits after this long, even if a part of the service does not stop. */
const stopMillis = 20_000

for (const signal of ["SIGTERM", "SIGINT"]) {
  process.once(signal, () => setTimeout(() => process.exit(1), stopMillis).unref())
}

/** Stops the service when the npm that started it is gone. */
const StopWithNpm = npmEnd.pipe(
  Effect.andThen(Effect.sync(() => process.kill(process.pid, "SIGTERM"))),
  Effect.forkScoped,
  Layer.effectDiscard
)

const Started = Layer.merge(StartMessage, UnhandledErrors).pipe(Layer.provide(ServiceLive))

Layer.launch(Layer.merge(StopWithNpm, Started)).pipe(
  Effect.catchTag("SettingsError", ({ issues }) =>
    failStart(
      [
        ...issues.map((issue) => `  ${issue}`),
        "Set these environment variables; docs/operations/settings.md describes all of them."
      ].join("\n")
    )
  ),
  Effect.catchTag(["DatabaseStartError", "EmbeddedPostgresError", "SecretError"], ({ message }) =>
    failStart(message)
  ),
  Effect.catchTag(["ServeError", "SocketServerError"], ({ cause }) =>
    failStart(`${String(cause)}\nChoose another address or port (HOST, PORT, SVC_RUNNER_PORT).`)
  ),
  // What nobody foresaw, too, is one line where logs are JSON.
  Effect.catchCauseIf(
    (cause) => !Cause.hasInterruptsOnly(cause) && !(Cause.squash(cause) instanceof StartError),
    (cause) => failStart(redactSecrets(Cause.pretty(cause)))
  ),
  NodeRuntime.runMain({ teardown: stopTeardown })
)
