/** A free TCP port, for a server whose address is needed before it listens. */
import { createServer } from "node:net"
import { Data, Effect } from "effect"

export class FreePortError extends Data.TaggedError("FreePortError")<{
  readonly host: string
  readonly cause: Error
}> {
  override readonly message = `Failed to find a free port on ${this.host}: ${this.cause.message}`
}

/**
 * Ports below the ephemeral ones: 32,768 and up on Linux, 49,152 and up on others. Systems give those
 * to connections, and to servers that leave the choice to them. All are above 10080, the highest that
 * browsers refuse.
 */
const ports = { least: 11_000, count: 21_000 }

/** Distance between the first ports of processes with consecutive ids. */
const portsPerProcess = 100

/** Number of ports that the search tries before it fails. */
const attempts = 100

let tried = 0

/** The next port of this process. Other processes are unlikely to try the same one meanwhile. */
const nextPort = (): number =>
  ports.least + ((process.pid * portsPerProcess + tried++) % ports.count)

const tryPort = (host: string, port: number) =>
  Effect.callback<number, FreePortError>((resume) => {
    const server = createServer()
    server.on("error", (cause) => resume(Effect.fail(new FreePortError({ host, cause }))))
    server.listen(port, host, () => {
      server.close(() => resume(Effect.succeed(port)))
    })
  })

/** Returns a port of this address that is probably free: another process may take it meanwhile. */
export const freePort = (host: string) =>
  Effect.suspend(() => tryPort(host, nextPort())).pipe(Effect.retry({ times: attempts - 1 }))

/** Whether a server could listen on this port now. */
export const isFreePort = (host: string, port: number) =>
  Effect.match(tryPort(host, port), { onFailure: () => false, onSuccess: () => true })
