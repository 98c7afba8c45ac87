/**
 * Cuts a connection, with a reset while bytes wait here. The buffer of the operating system is then
 * full, too, and its client does not read. After an ordinary close the system would keep that
 * buffer, megabytes of it, for minutes. A reset frees it.
 */
import { Socket } from "node:net"
import type { Duplex } from "node:stream"

export const cutConnection = (stream: Duplex): void => {
  const isUnread = stream.writableLength > 0
  if (isUnread && stream instanceof Socket) stream.resetAndDestroy()
  else stream.destroy()
}
