/** Close codes of the realtime socket. This module imports nothing, so that the client stays small. */

/** Why a socket closes, and what the client does next. */
export const closeCodes = {
  /** Bad or late first frame, foreign token, session revoked: sign in again. */
  unauthorized: 4001,
  /** The access token expired: refresh and reconnect. */
  tokenExpired: 4002,
  /** Banned, feature off, origin not allowed: do not reconnect. */
  forbidden: 4003,
  /** A newer connection of this player took over: do not reconnect. */
  replaced: 4004,
  /** Neither pong nor frame for 45 seconds: reconnect. */
  idle: 4008,
  /** Far too many frames: back off, then reconnect. */
  abuse: 4029,
  /** The node is draining; the seat is kept: reconnect after a random part of a second. */
  draining: 1012,
  /** The client reads too slowly: reconnect. */
  slowConsumer: 1013,
  /** The client sent a binary frame: send text frames only. */
  unsupported: 1003
} as const
export type CloseCode = (typeof closeCodes)[keyof typeof closeCodes]
