/** Requests that arrive while the service starts: the server listens before all routes are there. */
import { NodeHttpServer, NodeServices } from "@effect/platform-node"
import { assert, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer } from "effect"
import { HttpServer } from "effect/http"
import { WebSocket } from "ws"
import { Settings } from "#server/platform/settings/settings"
import { HttpServerHandle } from "#server/http/server"
import { at, request } from "#testing/players"

const SettingsLive = Settings.layer.pipe(
  Layer.provide(
    ConfigProvider.layer(ConfigProvider.fromEnv({ env: { PORT: "0", HOST: "127.0.0.1" } }))
  ),
  Layer.provide(NodeServices.layer)
)

/** A server that listens, without any route. */
const Listening = Layer.unwrap(
  Effect.map(HttpServerHandle, ({ server }) =>
    NodeHttpServer.layer(() => server, { host: "127.0.0.1", port: 0 })
  )
).pipe(Layer.provide(HttpServerHandle.layer), Layer.provide(SettingsLive))

/** The status with which the server refuses a WebSocket. */
const refusal = (url: string) =>
  Effect.callback<number | undefined>((resume) => {
    const socket = new WebSocket(url)
    socket.once("unexpected-response", (_, { statusCode }) => resume(Effect.succeed(statusCode)))
    socket.once("open", () => resume(Effect.die("the server accepted the socket")))
    socket.on("error", () => undefined)
    return Effect.sync(() => socket.terminate())
  })

it.live("answers 503 at once to a request or a socket that comes before the routes", () =>
  Effect.gen(function* () {
    const { address } = yield* HttpServer.HttpServer
    const port = "port" in address ? address.port : 0
    const answer = yield* request(`http://127.0.0.1:${port}/readyz`)
    assert.strictEqual(answer.status, 503)
    assert.strictEqual(at(answer.body, "error", "code"), "unavailable")
    assert.strictEqual(yield* refusal(`ws://127.0.0.1:${port}/v1/realtime`), 503)
  }).pipe(Effect.provide(Listening), Effect.timeout("30 seconds"))
)
