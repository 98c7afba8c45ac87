/**
 * The Colyseus server of the benchmarks with many players: rooms without state for `joinOrCreate`,
 * `four` and `eight` players each. Everything else as Colyseus ships it.
 *
 * Arguments: the port. Any `GET /readyz` answers 200 when the server is up.
 */
import { Room, Server } from "@colyseus/core"
import { WebSocketTransport } from "@colyseus/ws-transport"

class FourRoom extends Room {
  maxClients = 4
}

class EightRoom extends Room {
  maxClients = 8
}

const server = new Server({
  greet: false,
  gracefullyShutdown: false,
  transport: new WebSocketTransport(),
  express: (app) => app.get("/readyz", (_request, response) => response.end("ready"))
})
server.define("four", FourRoom)
server.define("eight", EightRoom)
await server.listen(Number(process.argv[2]), "127.0.0.1")

process.once("disconnect", () => process.exit())
