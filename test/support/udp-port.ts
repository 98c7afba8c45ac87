/** A UDP port of this machine, for servers in tests. */
import { createSocket } from "node:dgram"
import { Effect } from "effect"

/** A port that is free now. */
export const freeUdpPort = Effect.callback<number>((resume) => {
  const socket = createSocket("udp4")
  socket.bind(0, () => {
    const { port } = socket.address()
    socket.close(() => resume(Effect.succeed(port)))
  })
})
