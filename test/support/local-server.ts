/** HTTP servers on a loopback port, for requests that leave the service. */
import { createServer, type RequestListener } from "node:http"
import { createServer as createSecureServer, type ServerOptions } from "node:https"
import { Effect } from "effect"

/** Starts a server, with TLS if a certificate is given; returns its port. */
export const startServer = (listener: RequestListener, tls?: ServerOptions) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<ReturnType<typeof createServer>>((resume) => {
        const server =
          tls === undefined ? createServer(listener) : createSecureServer(tls, listener)
        server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
      }),
      (server) =>
        Effect.sync(() => {
          server.close()
          server.closeAllConnections()
        })
    ),
    (server) => {
      const address = server.address()
      return { port: typeof address === "object" && address !== null ? address.port : 0 }
    }
  )
