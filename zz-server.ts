import { ConfigProvider, Effect, Layer } from "effect"
import { SecureRandom } from "effect/crypto"
import { NodeServices } from "@effect/platform-node"
import { ThisNode } from "#entities/local-actors"
import { RoomRows } from "#sql/rooms"
import { DatabaseLive } from "./src/database.ts"
import { CoreLive, Routes, serveHttp } from "./src/http/app.ts"
import { HttpServerHandle } from "./src/http/server.ts"
import { SeedLive } from "./src/seed.ts"
import { Readiness } from "./src/system.ts"
import { Settings } from "./src/settings.ts"
const App = serveHttp(Routes).pipe(
  Layer.provide(SeedLive), Layer.provideMerge(CoreLive),
  Layer.provide([RoomRows.layer, ThisNode.layer, Readiness.always, HttpServerHandle.layer]),
  Layer.provideMerge(DatabaseLive), Layer.provideMerge(Settings.layer),
  Layer.provideMerge(Layer.mergeAll(SecureRandom.layerWebCrypto, NodeServices.layer)),
  Layer.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env: { PORT: "8098", SVC_DATA_DIR: "/tmp/svc-zz", HOST: "127.0.0.1", SVC_THROTTLES: process.argv[2] ?? "off" } })))
)
process.on("SIGUSR2", () => { const c = process.cpuUsage(); console.log("CPU " + (c.user + c.system)) })
Effect.runFork(Effect.scoped(Effect.flatMap(Layer.build(App), () => Effect.andThen(Effect.sync(() => console.log("READY")), Effect.never))))
process.on("SIGTERM", () => process.exit(0))
