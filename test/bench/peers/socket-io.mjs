/**
 * The socket.io server of the fan-out benchmark: rooms by name, WebSocket only, deflate off (its
 * default), a message is emitted to everybody else in the room.
 *
 * Arguments: the port. Any plain HTTP request answers 200 when the server is up.
 */
import { createServer } from "node:http"
import { Server } from "socket.io"

const http = createServer((_request, response) => response.end("ready"))
const io = new Server(http, { transports: ["websocket"], serveClient: false })

io.on("connection", (socket) => {
  let room = ""
  socket.on("join", (name, joined) => {
    room = name
    socket.join(name)
    joined()
  })
  socket.on("m", (data) => socket.to(room).emit("m", data))
})

http.listen(Number(process.argv[2]), "127.0.0.1")
process.once("disconnect", () => process.exit())
