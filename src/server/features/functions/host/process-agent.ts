/**
 * Connections to a process that may answer a request before it has read the body. The process then
 * closes its end, so further writes fail while the response waits. Node would drop it with the
 * connection.
 */
import { Agent, type ClientRequestArgs } from "node:http"
import { type NetConnectOpts, Socket } from "node:net"
import type { Duplex } from "node:stream"

type Done = (error?: Error | null) => void

/** Whether a process has closed its connection. */
export const isClosedByPeer = (error: unknown): boolean =>
  error instanceof Error &&
  "code" in error &&
  (error.code === "EPIPE" || error.code === "ECONNRESET")

/**
 * Socket that drops data which its peer no longer reads. It detects the end of the connection by
 * reading.
 */
class ReadToEndSocket extends Socket {
  isCut = false

  override _write(chunk: unknown, encoding: BufferEncoding, done: Done): void {
    if (this.isCut) done()
    else super._write(chunk, encoding, this.#dropping(done))
  }

  override _writev(chunks: Array<{ chunk: unknown; encoding: BufferEncoding }>, done: Done): void {
    if (this.isCut) done()
    else super._writev?.(chunks, this.#dropping(done))
  }

  #dropping(done: Done): Done {
    return (error) => {
      if (isClosedByPeer(error)) this.isCut = true
      done(this.isCut ? undefined : error)
    }
  }
}

export class ProcessAgent extends Agent {
  override createConnection(options: ClientRequestArgs & NetConnectOpts): Duplex {
    return new ReadToEndSocket(options).connect(options)
  }

  override keepSocketAlive(socket: Duplex): void {
    return socket instanceof ReadToEndSocket && socket.isCut
      ? undefined
      : super.keepSocketAlive(socket)
  }
}
