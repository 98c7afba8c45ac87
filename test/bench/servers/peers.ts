/** Every server that the fan-out benchmark knows, in the order in which they alternate. */
import { colyseus } from "./colyseus.ts"
import { limit } from "./limit.ts"
import { naive } from "./naive.ts"
import { ours, oursTwo } from "./ours.ts"
import type { Peer } from "./peer.ts"
import { socketIo } from "./socket-io.ts"

export const peers: ReadonlyArray<Peer> = [ours, oursTwo, colyseus, socketIo, naive, limit]
