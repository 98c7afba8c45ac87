/** Debug log: one line for each request, frame and change of the connection, without tokens. */

/** Receives the parts of a line. */
export type Log = (...parts: ReadonlyArray<unknown>) => void

const silent: Log = () => undefined

/** `true` logs to the console. */
export const logOf = (debug: boolean | Log): Log => {
  if (typeof debug === "function") return debug
  return debug ? (...parts) => console.debug("[player-backend]", ...parts) : silent
}
