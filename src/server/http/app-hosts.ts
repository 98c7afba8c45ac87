/** Sends requests for hosts of apps to the server of apps, past the routes of the service. */
import { Effect, Layer } from "effect"
import { AppServer } from "#server/features/hosting/serve"
import { HttpServerHandle } from "./server.ts"

export const AppHosts = Layer.effectDiscard(
  Effect.gen(function* () {
    const { serveApps } = yield* HttpServerHandle
    serveApps(yield* AppServer)
  })
).pipe(Layer.provide(AppServer.layer))
