/**
 * Reconnect policy. Pure: maps a close, the attempts before it and a random number to a decision. The
 * deploy benchmark plays its players by it.
 */
import { closeCodes } from "#rpc/close-codes"
import { abnormalClosure } from "./socket.ts"

/** Attempts of the client since its last stable connection. */
export interface Attempts {
  /** Consecutive closes, without those of a drained node that does not accept yet. */
  readonly failures: number
  /**
   * Time at which its node drained, in milliseconds of a monotonic clock, while its successor may
   * still start.
   */
  readonly drainedAt: number | undefined
}

export const noAttempts: Attempts = { failures: 0, drainedAt: undefined }

/** Stay closed, or reconnect after `delayMillis` and remember `attempts`. */
export type AfterClose =
  | { readonly reconnect: false }
  | { readonly reconnect: true; readonly delayMillis: number; readonly attempts: Attempts }

/** Close codes after which a new connection would be refused again, or would replace its successor. */
const finalCodes: ReadonlyArray<number> = [
  closeCodes.unauthorized,
  closeCodes.forbidden,
  closeCodes.replaced,
  closeCodes.unsupported
]

const firstMillis = 500
const maxMillis = 15_000
const abuseMillis = 5000

/** The shortest time between two attempts while a node starts, and half of the longest. */
export const startingMillis = 1000
/** Period in which the client tries at this pace: as long as a room keeps a seat by default. */
export const startingMaxMillis = 30_000

/** A connection that lasted this long resets the attempts. */
export const stableMillis = 5000

/**
 * Decides what follows a close at the time `at`. `random` is in [0, 1). Full jitter spreads the delay
 * over its whole range, so that the players of a lost node do not return at once.
 *
 * The players of a draining node wait for its successor with a seat each. They spread their first
 * attempts over a second. An attempt that is only refused costs a starting node little, so the next comes
 * after one to two seconds. Any other end means that the node is up and busy, and the
 * client backs off.
 */
export const afterClose = (
  { drainedAt, failures }: Attempts,
  { at, code }: { readonly code: number; readonly at: number },
  random: number
): AfterClose => {
  if (finalCodes.includes(code)) return { reconnect: false }
  const isFirst = failures === 0
  const next = (millis: number, attempts: Attempts): AfterClose => ({
    reconnect: true,
    delayMillis: Math.round(millis),
    attempts
  })
  if (isFirst && code === closeCodes.draining) {
    return next(startingMillis * random, { failures: 1, drainedAt: at })
  }
  if (drainedAt !== undefined && code === abnormalClosure && at - drainedAt < startingMaxMillis) {
    return next(startingMillis * (1 + random), { failures, drainedAt })
  }
  const attempts = { failures: failures + 1, drainedAt: undefined }
  // Only this client's own token is due, so nobody else returns with it.
  if (isFirst && code === closeCodes.tokenExpired) return next(0, attempts)
  const minMillis = code === closeCodes.abuse ? abuseMillis : 0
  return next(minMillis + Math.min(maxMillis, firstMillis * 2 ** failures) * random, attempts)
}
