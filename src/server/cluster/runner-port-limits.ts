/** Limits of the port on which runners reach each other. */
import { MiB } from "#rpc/units"

export const runnerPort = {
  /** The largest message before the other end has proved that it is a runner. */
  handshakeMaxBytes: 1024,
  handshakeSeconds: 3,
  /**
   * Connections that have proved nothing yet; beyond either bound the service closes the oldest
   * one.
   */
  unauthenticatedMax: 256,
  unauthenticatedPerAddressMax: 64,
  /** The largest frame of a runner. */
  frameMaxBytes: 16 * MiB
} as const
