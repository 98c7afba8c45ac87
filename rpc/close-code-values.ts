/**
 * The codes of `closeCodes`, each for itself: a bundler writes the numbers into the client. This module
 * imports nothing.
 */

/**
 * Authorization failed: bad first frame, foreign token, or revoked session. Sign in again. With the reason
 * `timed_out` the first frame was late: reconnect.
 */
export const unauthorized = 4001

/** The access token expired: refresh and reconnect. */
export const tokenExpired = 4002

/** Banned, feature off, origin not allowed: do not reconnect. */
export const forbidden = 4003

/** A newer connection of this player took over: do not reconnect. */
export const replaced = 4004

/** Idle connection: neither pong nor frame for 45 seconds. Reconnect. */
export const idle = 4008

/** Abuse: far too many frames. Back off, then reconnect. */
export const abuse = 4029

/** Draining node; it keeps the seat. Reconnect after a random part of a second. */
export const draining = 1012

/** The client reads too slowly: reconnect. */
export const slowConsumer = 1013

/** The client sent a binary frame: send text frames only. */
export const unsupported = 1003
