/** Peer-to-peer connections, as the service composes them. */
import { peerFrames } from "./frames.ts"
import { TurnServers } from "./turn-servers.ts"

export const peers = { frameServices: TurnServers.layer, frames: peerFrames }
