/**
 * Failure detector of a socket. Browsers hide the service's pings, and a dead socket may look open for
 * minutes. So the client pings after 2 seconds of silence while a call waits. While only calls without
 * a timeout wait (there may be very many), it pings after half of the heartbeat interval, else after
 * all of it. When the page becomes visible or online, it pings at once.
 */
import { onWake } from "./page-listeners.ts"
import type { Timers } from "./timers.ts"

/** Interval at which the detector checks for received frames. */
const checkMillis = 2000
/** Timeout of a ping while a call waits, and else. */
const pingMillis = 3000
const relaxedPingMillis = 10_000

export interface Watched {
  readonly timers: Timers
  readonly heartbeatMillis: number
  /** Whether a frame arrived since the last call. */
  readonly takeReceived: () => boolean
  /** Number of waiting calls: those with a timeout, and all. */
  readonly calls: () => readonly [timed: number, all: number]
  readonly ping: () => Promise<unknown>
  /** A ping stayed unanswered. */
  readonly silent: () => void
}

const nothing = (): void => undefined

/** Watches a socket until the returned function is called. */
export const watchSocket = (watched: Watched): (() => void) => {
  const { calls, heartbeatMillis, ping, silent, takeReceived, timers } = watched
  let cancel = nothing
  let silentMillis = 0

  /** Pings, and ends the socket if nothing arrives in time. */
  const probe = (millis: number) => {
    const pinged = () => {
      cancelTimeout()
      if (!takeReceived()) return silent()
      silentMillis = 0
      checkLater()
    }
    const cancelTimeout = timers.after(millis, pinged)
    cancel = cancelTimeout
    const replied = () => {
      if (cancel === cancelTimeout) pinged()
    }
    ping().then(replied, replied)
  }
  const check = () => {
    const [timed, all] = calls()
    silentMillis = takeReceived() ? 0 : silentMillis + checkMillis
    const limit = timed > 0 ? checkMillis : all > 0 ? heartbeatMillis / 2 : heartbeatMillis
    if (silentMillis < limit) return checkLater()
    probe(timed > 0 ? pingMillis : relaxedPingMillis)
  }
  const checkLater = () => {
    cancel = timers.after(checkMillis, check)
  }
  takeReceived()
  checkLater()
  // A page that was frozen or offline may have a dead socket.
  const stopWake = onWake(() => {
    cancel()
    takeReceived()
    probe(pingMillis)
  })
  return () => {
    stopWake()
    cancel()
    cancel = nothing
  }
}
