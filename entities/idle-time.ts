/** Idle time after which rooms, channels, voice sessions and player sessions leave memory. */
import { Context } from "effect"

/** Time for which a session without a connection is kept. */
export const idleSeconds = 60

/**
 * Idle time in milliseconds. The fuzz test shortens it, to measure memory after the entities have
 * ended.
 */
export const IdleMillis = Context.Reference<number>("entities/idle-time/IdleMillis", {
  defaultValue: () => idleSeconds * 1000
})
