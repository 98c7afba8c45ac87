/** Idle time after which rooms, channels, voice sessions and player sessions leave memory. */
import { Context } from "effect"
import { playerSessions } from "#rpc/limits"

/**
 * Idle time in milliseconds. The fuzz test shortens it, to measure memory after the entities have
 * ended.
 */
export const IdleMillis = Context.Reference<number>("entities/idle-time/IdleMillis", {
  defaultValue: () => playerSessions.idleSeconds * 1000
})
