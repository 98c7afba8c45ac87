/** The upper limit: the `naive` server's protocol on Bun, which publishes in C++. */
import { joinBroadcastRoom } from "./broadcast.ts"
import { startPeer } from "./peer-packages.ts"
import type { Peer } from "./peer.ts"

export const bun: Peer = {
  name: "bun",
  start: (core) => startPeer("bun-publish.mjs", core, [], "bun"),
  joinRoom: joinBroadcastRoom
}
