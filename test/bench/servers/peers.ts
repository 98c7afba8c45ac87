/** Every server that the fan-out benchmark knows, in the order in which they alternate. */
import type { Peer } from "./peer.ts"
import { limit } from "./limit.ts"
import { naive } from "./naive.ts"
import { ours } from "./ours.ts"

export const peers: ReadonlyArray<Peer> = [ours, naive, limit]
