/** Limits of the realtime socket. */
import { MiB } from "#rpc/units"

export const socketLimits = {
  authFrameSeconds: 5,
  /**
   * A node that cannot process the first frame within this time closes the socket, so that the client
   * tries another node.
   */
  admitSeconds: 15,
  /**
   * Frames that a client may send before the reply to the first one. Together they are at most one
   * frame's size.
   */
  earlyFramesMax: 32,
  fragmentsMax: 64,
  bufferedChunksMax: 1024,
  heartbeatSeconds: 20,
  idleSeconds: 45,
  tokenGraceSeconds: 30,
  /**
   * Unsent bytes of all sockets of a process. Beyond it, the environment with the most unsent bytes
   * loses the sockets with the largest backlogs, which close with 1013.
   */
  outboxesMaxBytes: 64 * MiB,
  /**
   * Memory of a write that waits behind another one of its socket, beside its bytes, as measured.
   */
  queuedWriteBytes: 200,
  /**
   * Longest interval between two writes: one frame of a 60 Hz game, when the event loop is busy for
   * `fullShare` of the time. Below `busyShare` a node writes at once.
   */
  coalesceMillis: 16,
  busyShare: 0.5,
  fullShare: 0.9,
  loadMeasuredMillis: 100,
  framesPerSecond: 100,
  framesBurst: 200,
  /** Tokens that a malformed frame takes from the socket's rate limit. */
  malformedFrameCost: 5,
  dropsUntilAbuse: 200,
  dropsWindowSeconds: 10,
  anonymousFramesPerSecond: 5,
  anonymousFramesBurst: 10,
  /** Anonymous sockets of one address on one node. */
  anonymousPerAddress: 20,
  /** Share of a node's connections for sockets; the rest is for HTTP requests. */
  shareOfConnections: 5 / 6
} as const
