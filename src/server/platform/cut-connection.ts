/** Ends of connections. */
import { Socket } from "node:net"
import type { Duplex } from "node:stream"

/** Time in which the other end has to read what was sent and to close. */
const lingerMillis = 2000

/** Destroys a finished connection after a while, in case the other end does not close its half. */
export const closeWithLinger = (stream: Duplex): void => {
  const cut = setTimeout(() => stream.destroy(), lingerMillis)
  stream.once("close", () => clearTimeout(cut))
}

/**
 * Cuts a connection, with a reset while bytes wait here. The buffer of the operating system is then
 * full, too, and its client does not read. After an ordinary close the system would keep that
 * buffer, megabytes of it, for minutes. A reset frees it.
 */
export const cutConnection = (stream: Duplex): void => {
  const isUnread = stream.writableLength > 0
  if (isUnread && stream instanceof Socket) stream.resetAndDestroy()
  else stream.destroy()
}
