/** A free TCP port, for a server whose address is needed before it listens. */
import { createServer } from "node:net"
import { Data, Effect } from "effect"

export class FreePortError extends Data.TaggedError("FreePortError")<{
  readonly host: string
  readonly cause: Error
}> {
  override readonly message = `Failed to find a free port on ${this.host}: ${this.cause.message}`
}

/** Returns a port of this address that is probably free: another process may take it meanwhile. */
export const freePort = (host: string) =>
  Effect.callback<number, FreePortError>((resume) => {
    const server = createServer()
    server.once("error", (cause) => resume(Effect.fail(new FreePortError({ host, cause }))))
    server.listen(0, host, () => {
      const address = server.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      server.close(() => resume(Effect.succeed(port)))
    })
  })
