/**
 * The baseline: a broadcast server as a developer writes it with `ws` on the first evening. It
 * stringifies a message once and sends it to each recipient.
 */
import { freePort, launchServer } from "../machine/process.ts"
import { joinBroadcastRoom, serveBroadcast } from "./broadcast.ts"
import type { Peer } from "./peer.ts"

export const naive: Peer = {
  name: "naive",
  start: async (core) => {
    const port = await freePort()
    return launchServer({ script: import.meta.filename, core, port, args: [`${port}`] })
  },
  joinRoom: joinBroadcastRoom
}

if (import.meta.main) {
  serveBroadcast<string>(Number(process.argv[2]), {
    encode: (text) => text,
    recipient: (socket) => (text) => socket.send(text)
  })
}
