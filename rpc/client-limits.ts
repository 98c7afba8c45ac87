/**
 * The limits that the client needs, each for itself: a bundler then leaves out all others. This module
 * imports nothing.
 */

/** The largest frame of a client. */
export const frameMaxBytes = 64 * 1024

/** Bytes that may wait to be written to one socket. */
export const outboxMaxBytes = 1024 * 1024

/** The service warns this long before the access token of a socket expires. */
export const tokenWarningSeconds = 60

/** A tab whose refresh token another tab has just used is answered `refresh_race` for this long. */
export const refreshRaceSeconds = 10
