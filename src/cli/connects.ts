/** Whether something listens at a port of a host. */
import { connect } from "node:net"
import { connect as connectTls } from "node:tls"
import { Effect } from "effect"

interface Address {
  readonly host: string
  readonly port: number
  readonly isTls: boolean
}

const timeout = "5 seconds"

/** Connects and closes, over TLS with a trusted certificate. */
export const connects = ({ host, isTls, port }: Address) =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      const socket = isTls ? connectTls({ host, port, servername: host }) : connect({ host, port })
      // The use below reports it.
      return socket.on("error", () => undefined)
    }),
    (socket) =>
      Effect.callback<boolean>((resume) => {
        socket.once(isTls ? "secureConnect" : "connect", () => resume(Effect.succeed(true)))
        socket.once("error", () => resume(Effect.succeed(false)))
      }).pipe(Effect.timeoutOrElse({ duration: timeout, orElse: () => Effect.succeed(false) })),
    (socket) => Effect.sync(() => socket.destroy())
  )
