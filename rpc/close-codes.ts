/** Close codes of the realtime socket: why a socket closes, and what the client does next. */
import * as closeCodes from "./close-code-values.ts"

export { closeCodes }
export type CloseCode = (typeof closeCodes)[keyof typeof closeCodes]
