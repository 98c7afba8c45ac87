/**
 * What follows a close of the socket (spec section 6, decisions 3.6.6 to 3.6.8). Pure: the code, the
 * number of failures in a row and a random number in, a decision out.
 */
import { closeCodes } from "#rpc/realtime"

/** Stay closed, or open again after `delayMillis`. */
export type AfterClose =
  | { readonly reconnect: false }
  | { readonly reconnect: true; readonly delayMillis: number }

/** Closes after which a new connection would only be refused again, or would fight its successor. */
const finalCodes: ReadonlySet<number> = new Set([
  closeCodes.unauthorized,
  closeCodes.forbidden,
  closeCodes.replaced,
  closeCodes.unsupported
])

/** Closes that ask for the client's return: nothing is wrong, the first time. */
const immediateCodes: ReadonlySet<number> = new Set([closeCodes.draining, closeCodes.tokenExpired])

const firstMillis = 500
const maxMillis = 15_000
const abuseMillis = 5000

/** A connection that stood this long was sound, and failures are counted anew. */
export const stableMillis = 5000

/**
 * Decides what follows a close. `failures` counts the closes in a row without a sound connection
 * between them, this one included; `random` is in [0, 1). The delay is spread over its whole range
 * (full jitter), so that the players of a lost node do not return as one.
 */
export const afterClose = (code: number, failures: number, random: number): AfterClose => {
  if (finalCodes.has(code)) return { reconnect: false }
  if (failures <= 1 && immediateCodes.has(code)) return { reconnect: true, delayMillis: 0 }
  const ceiling = Math.min(maxMillis, firstMillis * 2 ** (failures - 1))
  const minMillis = code === closeCodes.abuse ? abuseMillis : 0
  return { reconnect: true, delayMillis: Math.round(minMillis + ceiling * random) }
}
