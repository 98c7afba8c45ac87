/**
 * The upper limit of the fan-out benchmark: Bun's server, whose rooms, frames and writes are C++
 * (uWebSockets). It speaks the protocol of the naive server and publishes to a topic for each room.
 *
 * Arguments: the port. Any plain HTTP request answers 200 when the server is up.
 */
import { randomBytes } from "node:crypto"

Bun.serve({
  port: Number(process.argv[2]),
  hostname: "127.0.0.1",
  fetch: (request, server) => {
    // As long as the service's own player ids, so that all servers deliver as many bytes.
    const data = { from: `pl_${randomBytes(13).toString("hex")}`, room: "" }
    return server.upgrade(request, { data }) ? undefined : new Response("ready")
  },
  websocket: {
    perMessageDeflate: false,
    message: (socket, text) => {
      const frame = JSON.parse(text)
      const { from } = socket.data
      if (frame.t === "join") {
        socket.data.room = frame.room
        socket.subscribe(frame.room)
        socket.send(JSON.stringify({ t: "joined", id: from }))
        return
      }
      const { data, type } = frame
      socket.publish(
        socket.data.room,
        JSON.stringify({ t: "message", from, type, data, at: Date.now() })
      )
    }
  }
})

process.once("disconnect", () => process.exit())
