/**
 * Reconnect policy. Pure: maps the close code, the number of consecutive failures and a random number
 * to a decision.
 */
import { closeCodes } from "#rpc/close-codes"

/** Stay closed, or reconnect after `delayMillis`. */
export type AfterClose =
  | { readonly reconnect: false }
  | { readonly reconnect: true; readonly delayMillis: number }

/** Close codes after which a new connection would be refused again, or would replace its successor. */
const finalCodes: ReadonlySet<number> = new Set([
  closeCodes.unauthorized,
  closeCodes.forbidden,
  closeCodes.replaced,
  closeCodes.unsupported
])

/** Close codes that ask the client to return: the first reconnect needs no delay. */
const immediateCodes: ReadonlySet<number> = new Set([closeCodes.draining, closeCodes.tokenExpired])

const firstMillis = 500
const maxMillis = 15_000
const abuseMillis = 5000

/** A connection that lasted this long resets the failure count. */
export const stableMillis = 5000

/**
 * Decides what follows a close. `failures` counts consecutive closes without a stable connection,
 * including this one. `random` is in [0, 1). Full jitter spreads the delay over its whole range, so
 * that the players of a lost node do not return at once.
 */
export const afterClose = (code: number, failures: number, random: number): AfterClose => {
  if (finalCodes.has(code)) return { reconnect: false }
  if (failures <= 1 && immediateCodes.has(code)) return { reconnect: true, delayMillis: 0 }
  const ceiling = Math.min(maxMillis, firstMillis * 2 ** (failures - 1))
  const minMillis = code === closeCodes.abuse ? abuseMillis : 0
  return { reconnect: true, delayMillis: Math.round(minMillis + ceiling * random) }
}
