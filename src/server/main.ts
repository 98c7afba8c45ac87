/** The entry: starts the service and says where to go next. */
import { NodeRuntime } from "@effect/platform-node"
import { Console, Data, Effect, Layer } from "effect"
import { HttpServer } from "effect/http"
import { ServiceLive } from "./app.ts"
import { Settings } from "./platform/settings/settings.ts"

const Greeting = Layer.effectDiscard(
  Effect.gen(function* () {
    const { baseUrl, dataDir, logs, production, runner } = yield* Settings
    const { address } = yield* HttpServer.HttpServer
    const port = "port" in address ? address.port : ""
    const here = `http://localhost:${port}`
    if (logs.format === "json") return yield* Effect.logInfo(`The service is up on port ${port}`)
    const lines = [
      `The player backend is up at ${here} (for players: ${baseUrl}).`,
      `  API reference   ${here}/docs`,
      ...(production ? [] : [`  keys            ${dataDir}/dev-keys.json (project demo)`]),
      ...(runner === undefined ? [] : [`  runner          ${runner.host}:${runner.port}`]),
      "The README takes you to two players in a room. Ctrl-C stops the service."
    ]
    yield* Console.log(lines.join("\n"))
  })
)

/** The longest that a stop may take, whatever hangs. */
const stopMillis = 20_000

for (const signal of ["SIGTERM", "SIGINT"]) {
  process.once(signal, () => setTimeout(() => process.exit(1), stopMillis).unref())
}

/** A start that fails says what to mend. */
class StartError extends Data.TaggedError("StartError")<{ readonly message: string }> {}

Layer.launch(Greeting.pipe(Layer.provide(ServiceLive))).pipe(
  Effect.catchTag(["ServeError", "SocketServerError"], (error) => {
    const message = `The service cannot listen (${String(error.cause)}); choose another port.`
    return Effect.fail(new StartError({ message }))
  }),
  NodeRuntime.runMain
)
