/** How long rooms, channels, calls and player sessions without use stay in memory. */
import { Context } from "effect"
import { playerSessions } from "#rpc/limits"

/** In milliseconds. The fuzz test shortens it: it measures memory once they have ended. */
export const IdleMillis = Context.Reference<number>("entities/idle-time/IdleMillis", {
  defaultValue: () => playerSessions.idleSeconds * 1000
})
