/**
 * The load generator's own share of every latency: a server without rooms that sends each frame back
 * to its sender.
 */
import { createServer } from "node:http"
import { WebSocketServer } from "ws"
import { freePort, launchServer } from "../machine/process.ts"
import { broadcastPlayer } from "./broadcast.ts"
import type { Peer } from "./peer.ts"

export const echo: Peer = {
  name: "echo",
  echoes: true,
  start: async (core) => {
    const port = await freePort()
    return launchServer({ script: import.meta.filename, core, port, args: [`${port}`] })
  },
  joinRoom: async (plan) => {
    const members = Array.from({ length: plan.size }, (_, member) => broadcastPlayer(plan, member))
    return (await Promise.all(members)).map(({ player }) => player)
  }
}

if (import.meta.main) {
  const sockets = new WebSocketServer({ noServer: true, perMessageDeflate: false })
  createServer((_request, response) => response.end("ready"))
    .on("upgrade", (request, raw, head) =>
      sockets.handleUpgrade(request, raw, head, (socket) =>
        socket.on("message", (bytes) => socket.send(bytes, { binary: false }))
      )
    )
    .listen(Number(process.argv[2]), "127.0.0.1")
  process.once("disconnect", () => process.exit())
}
