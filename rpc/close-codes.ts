/** Close codes of the realtime socket: why a socket closes, and what the client does next. */
import * as closeCodes from "./close-code-values.ts"

export { closeCodes }
/**
 * Reason of a close with 4001 whose first frame did not come in time. Nothing is wrong with its token: the page
 * or the machine was frozen in between. So the client reconnects.
 */
export const authTimeout = "timed_out"

export type CloseCode = (typeof closeCodes)[keyof typeof closeCodes]
