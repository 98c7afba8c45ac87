/** Matchmaking, as the service composes it. */
import { matchmakingFrames } from "./frames.ts"

export const matchmaking = { frames: matchmakingFrames }
