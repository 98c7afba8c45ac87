/**
 * Request rate limits that all nodes share, in Postgres: token buckets, which let a burst pass and then
 * refill, and sliding windows, which are exact. `SVC_THROTTLES=off` disables them.
 */

const secondsPerHour = 3600

/** One token bucket: `burst` requests at once, refilled evenly over `seconds`. */
export interface Throttle {
  readonly burst: number
  readonly seconds: number
}

/**
 * Factor of the limit of a /48 network over that of an IPv6 client, which is one /64 network.
 * Providers give one customer a /64 at least, and at most a /48, which has 65,536 of them.
 */
export const siteFactor = 16

/** Buckets that no endpoint declares by itself (`PlayerRate`, `CallerRate`), by name. */
export const throttles = {
  guestPerAddress: { burst: 30, seconds: 60 },
  refreshPerSession: { burst: 30, seconds: 60 },
  playerApi: { burst: 300, seconds: 60 },
  secretKey: { burst: 6000, seconds: 60 },
  /** Look-ups of what a key opens, by key. */
  keyDescription: { burst: 600, seconds: 60 },
  signupPerAddress: { burst: 10, seconds: 3600 },
  /**
   * Failed sign-ins: of one account from one address, of one account from anywhere, and from one
   * address to any account. NIST SP 800-63B allows at most 100 attempts for each account.
   */
  loginPerAccount: { burst: 10, seconds: 900 },
  loginPerAccountAnywhere: { burst: 100, seconds: secondsPerHour },
  loginPerAddress: { burst: 60, seconds: 900 },
  /** Mails to one address; both limits apply. */
  mailsPerMinute: { burst: 1, seconds: 60 },
  mailsPerHour: { burst: 5, seconds: secondsPerHour },
  /** Mails to one address from all projects of one developer. */
  mailsPerDeveloper: { burst: 20, seconds: secondsPerHour },
  /** Reset links requested from one IP address, for any account. */
  forgotPerAddress: { burst: 30, seconds: secondsPerHour },
  /** OAuth sign-in from one IP address: start, callback, exchange and native sign-in. */
  oauthStartPerAddress: { burst: 30, seconds: 60 },
  oauthReturnPerAddress: { burst: 60, seconds: 60 },
  oauthExchangePerAddress: { burst: 30, seconds: 60 },
  oauthNativePerAddress: { burst: 30, seconds: 60 },
  /** Failed confirmations of a player's deletion. */
  deletionPerPlayer: { burst: 10, seconds: 900 },
  /** Checkouts that one developer starts. */
  checkouts: { burst: 20, seconds: secondsPerHour },
  /** Requests of one developer session (`kds_`). */
  developerApi: { burst: 600, seconds: 60 },
  /**
   * Joins by code of one player, and wrong codes from one IP address. Both stop an attacker from
   * guessing codes, even with many players.
   */
  roomCodesPerPlayer: { burst: 30, seconds: 60 },
  wrongRoomCodesPerAddress: { burst: 60, seconds: 900 },
  /** Visits through share links, reported from one IP address. */
  shareVisitsPerAddress: { burst: 60, seconds: 60 },
  /** `channelCreate`, for each player. */
  channelCreate: { burst: 20, seconds: 60 }
} as const satisfies Record<string, Throttle>

/** One sliding window: no `seconds` ever contain more than `limit` requests. */
export interface RateWindow {
  readonly limit: number
  readonly seconds: number
}

/** Windows that no endpoint declares by itself, by name. */
export const rateWindows = {
  /** Appeals of one player, or of one session. */
  appeals: { limit: 5, seconds: secondsPerHour },
  /** Session transfer codes redeemed from one IP address. */
  redeemPerAddress: { limit: 10, seconds: 60 },
  /** Renames of one project. */
  projectRenames: { limit: 20, seconds: secondsPerHour }
} as const satisfies Record<string, RateWindow>
