/** Connections that come while the event loop is busy: many players return at once after a stop. */
import { Worker } from "node:worker_threads"
import { NodeServices } from "@effect/platform-node"
import { assert, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer } from "effect"
import { HttpServer } from "effect/http"
import { HttpServerHandle, HttpServerLive } from "#server/http/server"
import { Settings } from "#server/platform/settings/settings"

const SettingsLive = Settings.layer.pipe(
  Layer.provide(
    ConfigProvider.layer(ConfigProvider.fromEnv({ env: { PORT: "0", HOST: "127.0.0.1" } }))
  ),
  Layer.provide(NodeServices.layer)
)

const Listening = HttpServerLive.pipe(
  Layer.provideMerge(HttpServerHandle.layer),
  Layer.provide(SettingsLive)
)

const connections = 1000
const waitMillis = 100
const waits = 100

/** A thread that opens connections, and counts those that the system has taken. */
const clients = `
  const { connect } = require("node:net")
  const { workerData: { port, count, opened } } = require("node:worker_threads")
  const open = new Int32Array(opened)
  for (let n = 0; n < count; n++) {
    connect(port, "127.0.0.1", () => {
      if (Atomics.add(open, 0, 1) + 1 === count) Atomics.notify(open, 0)
    }).on("error", () => undefined)
  }
`

/** Opens connections while this thread does nothing else; how many of them the system has taken. */
const openWhileBusy = (port: number): number => {
  const opened = new SharedArrayBuffer(4)
  const open = new Int32Array(opened)
  const worker = new Worker(clients, {
    eval: true,
    workerData: { port, count: connections, opened }
  })
  for (let wait = 0; wait < waits && Atomics.load(open, 0) < connections; wait++) {
    Atomics.wait(open, 0, Atomics.load(open, 0), waitMillis)
  }
  void worker.terminate()
  return Atomics.load(open, 0)
}

it.live("keeps a thousand connections that come while the event loop is busy", () =>
  Effect.gen(function* () {
    const { address } = yield* HttpServer.HttpServer
    const port = "port" in address ? address.port : 0
    assert.strictEqual(openWhileBusy(port), connections)
  }).pipe(Effect.provide(Listening), Effect.scoped)
)
