/** Debug log: one line for each request, frame and change of the connection, without tokens. */

/** Receives the parts of a line. */
export type Log = (...parts: ReadonlyArray<unknown>) => void

/** `true` logs to the console. */
export const logOf = (debug: boolean | Log): Log =>
  typeof debug === "function"
    ? debug
    : (...parts) => {
        if (debug) console.debug("[player-backend]", ...parts)
      }
