/**
 * Order of the requests of one connection. A client may send a request before it has the response to
 * the one before. Node hands over all of them at once, which multiplies what a connection can hold by
 * thousands. So each waits here until the response before it has been sent.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Duplex } from "node:stream"

/** Requests that a connection may send before the response to the first one. */
const pipelinedMax = 32

interface Connection {
  /** Response to the latest request, until it is sent: it keeps its whole body alive. */
  newest: ServerResponse | undefined
  waiting: number
}

export class Pipeline {
  readonly #connections = new WeakMap<Duplex, Connection>()

  /** Runs the request when the response before it has been sent. */
  add({ socket }: IncomingMessage, response: ServerResponse, run: () => void): void {
    const connection = this.#connectionOf(socket)
    const before = connection.newest
    connection.newest = response
    // It comes once: to remove the listener would cost more than the rest.
    response.on("close", () => {
      if (connection.newest === response) connection.newest = undefined
    })
    if (before === undefined || before.writableFinished) return run()
    if (connection.waiting >= pipelinedMax) return void socket.destroy()
    connection.waiting += 1
    before.once("close", () => {
      connection.waiting -= 1
      if (!socket.destroyed) run()
    })
  }

  #connectionOf(socket: Duplex): Connection {
    const known = this.#connections.get(socket)
    if (known !== undefined) return known
    const connection = { newest: undefined, waiting: 0 }
    this.#connections.set(socket, connection)
    return connection
  }

  /** The response that is still to be sent; undefined if there is none. */
  pending(socket: Duplex): ServerResponse | undefined {
    const newest = this.#connections.get(socket)?.newest
    return newest === undefined || newest.writableFinished ? undefined : newest
  }
}
