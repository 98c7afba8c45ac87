/**
 * The Colyseus server of the fan-out benchmark: one room class without state, whose only message is
 * broadcast to everybody else. Deflate is off and the message rate unlimited, as Colyseus ships. The
 * patch rate stays at its 50 ms: without state there is nothing to patch, and switching it off makes
 * each room tick its clock three times as often.
 *
 * Arguments: the port. Any `GET /readyz` answers 200 when the server is up.
 */
import { Room, Server } from "@colyseus/core"
import { WebSocketTransport } from "@colyseus/ws-transport"

class BroadcastRoom extends Room {
  onCreate() {
    this.onMessage("m", (client, data) => this.broadcast("m", data, { except: client }))
  }
}

const server = new Server({
  greet: false,
  gracefullyShutdown: false,
  transport: new WebSocketTransport(),
  express: (app) => app.get("/readyz", (_request, response) => response.end("ready"))
})
server.define("broadcast", BroadcastRoom)
await server.listen(Number(process.argv[2]), "127.0.0.1")

process.once("disconnect", () => process.exit())
