/**
 * How often one may ask (spec section 8, decisions 3.1.14): the buckets that all nodes share.
 * `SVC_THROTTLES=off` lifts them.
 */

const secondsPerHour = 3600

/** One token bucket: `burst` requests at once, refilled evenly over `seconds`. */
export interface Throttle {
  readonly burst: number
  readonly seconds: number
}

/** Request throttles shared by all nodes; `SVC_THROTTLES=off` lifts them. */
export const throttles = {
  guestPerAddress: { burst: 30, seconds: 60 },
  refreshPerSession: { burst: 30, seconds: 60 },
  playerApi: { burst: 300, seconds: 60 },
  /** Appeals, by player or by session. */
  appeals: { burst: 5, seconds: secondsPerHour },
  savePut: { burst: 60, seconds: 60 },
  secretKey: { burst: 6000, seconds: 60 },
  signupPerAddress: { burst: 10, seconds: 3600 },
  /**
   * Failed sign-ins: of one account from one address, of one address whatever the account, and of one
   * account wherever they come from (NIST SP 800-63B: no more than 100).
   */
  loginPerAccount: { burst: 10, seconds: 900 },
  loginPerAccountAnywhere: { burst: 100, seconds: secondsPerHour },
  loginPerAddress: { burst: 60, seconds: 900 },
  /** Mails to one address: both hold. */
  mailsPerMinute: { burst: 1, seconds: 60 },
  mailsPerHour: { burst: 5, seconds: secondsPerHour },
  /** Reset links asked for from one address, whomever they are for. */
  forgotPerAddress: { burst: 30, seconds: secondsPerHour },
  /** External sign-in, by address: beginning, returning from the provider, getting a session. */
  oauthStartPerAddress: { burst: 30, seconds: 60 },
  oauthReturnPerAddress: { burst: 60, seconds: 60 },
  oauthExchangePerAddress: { burst: 30, seconds: 60 },
  oauthNativePerAddress: { burst: 30, seconds: 60 },
  /** Wrong proofs of who wants to delete a player, by player. */
  deletionPerPlayer: { burst: 10, seconds: 900 },
  /** Codes for another browser, by player; redeeming them, by address. */
  transferPerPlayer: { burst: 10, seconds: 600 },
  redeemPerAddress: { burst: 10, seconds: 60 },
  /** Changes of a project's name. */
  projectRenames: { burst: 20, seconds: 3600 },
  /** What a developer asks with a `kds_` session. */
  developerApi: { burst: 600, seconds: 60 },
  /**
   * Joins by code, and wrong codes from one address, so that codes cannot be found by trying: not by
   * one player, and not by one after the other.
   */
  roomCodesPerPlayer: { burst: 30, seconds: 60 },
  wrongRoomCodesPerAddress: { burst: 60, seconds: 900 },
  /** `POST /v1/realtime/channels/:name/messages`, by key. */
  channelMessages: { burst: 600, seconds: 60 },
  /** PUT, DELETE and moderate of channels together, by key. */
  channelManagement: { burst: 300, seconds: 60 },
  /** `channelCreate`, by player. */
  channelCreate: { burst: 20, seconds: 60 }
} as const satisfies Record<string, Throttle>
