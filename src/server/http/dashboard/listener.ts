/**
 * Port of the dashboard's own (`SVC_DASHBOARD=<port>`), which passes its connections to the server
 * of the service. The port of a connection then decides whether a request may see the dashboard.
 */
import { createServer } from "node:net"
import { Effect, Layer } from "effect"
import { HttpServerError } from "effect/http"
import { Settings } from "#server/platform/settings/settings"
import { HttpServerHandle } from "../server.ts"

/** Listens on the dashboard's port, if it has one. */
export const DashboardPort = Layer.effectDiscard(
  Effect.gen(function* () {
    const { dashboard, host } = yield* Settings
    if (typeof dashboard !== "number") return
    const { server } = yield* HttpServerHandle
    const listener = createServer({ noDelay: true }, (socket) => server.emit("connection", socket))
    yield* Effect.acquireRelease(
      Effect.callback<void, HttpServerError.ServeError>((resume) => {
        listener.on("error", (cause) =>
          resume(Effect.fail(new HttpServerError.ServeError({ cause })))
        )
        listener.listen(dashboard, host, () => resume(Effect.void))
      }),
      () => Effect.sync(() => listener.close())
    )
  })
)
