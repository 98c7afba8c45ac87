/** Limits of the API, and bounds of queues, caches and buffers: each once, with its unit in the name. */

import { refreshRaceSeconds } from "./client-limits.ts"

export { functionDeliveries, functionLogs, functions, functionUsage } from "./functions-limits.ts"
export { hosting } from "./hosting-limits.ts"
export { share, shareCards } from "./share-limits.ts"
export {
  socket,
  graces,
  rooms,
  runnerPort,
  channels,
  turn,
  matchmaking,
  playerSessions,
  voice
} from "./realtime-limits.ts"
export { type RateWindow, rateWindows, siteFactor, type Throttle, throttles } from "./throttles.ts"

const KiB = 1024
const MiB = 1024 * KiB
const GiB = 1024 * MiB
const secondsPerHour = 3600
const secondsPerDay = 24 * secondsPerHour

/** Sessions, passwords and single-use codes. */
export const sessions = {
  accessTokenSeconds: 15 * 60,
  refreshTokenSeconds: 90 * secondsPerDay,
  /**
   * Time in which a repeated use of the direct parent of the current refresh token gets
   * `refresh_race`. A later use revokes the session.
   */
  refreshRaceSeconds,
  verificationLinkSeconds: secondsPerDay,
  resetLinkSeconds: 30 * 60,
  oauthCodeSeconds: 60,
  transferCodeSeconds: 600,
  passwordMinCharacters: 8,
  passwordMaxCharacters: 256,
  displayNameMaxCharacters: 32
} as const

/** Guests who cannot come back. */
export const guests = {
  /** Default of a setting: days from the end of the last refresh token to the deletion. */
  expiryDays: 30,
  /** Guests that are found with one statement. */
  expiryBatch: 100,
  /** Time for which one process deletes before another one may. */
  expiryClaimSeconds: 30 * 60
} as const

/** Email addresses and the links in mails. */
export const email = {
  addressMaxCharacters: 254,
  redirectUrlMaxCharacters: 2048,
  tokenMaxCharacters: 128
} as const

/** Session transfer codes. */
export const transfer = {
  codeCharacters: 8
} as const

/** Age signals. */
export const ages = { yearsMax: 150 } as const

/** The mail outbox. */
export const mail = {
  /**
   * Queued mails; beyond it 503 `mail_unavailable`. The projects of one developer get no more
   * places than remain free: alone they have half of them.
   */
  waitingMax: 10_000,
  /** Mails that one process sends at a time. */
  concurrency: 5,
  attemptsMax: 10,
  /** Delay before the second attempt. It doubles with each further attempt, up to `retrySecondsMax`. */
  retrySeconds: 30,
  retrySecondsMax: secondsPerHour,
  /** Timeout of one attempt. Another process takes the mail over after `claimSeconds`. */
  attemptSeconds: 60,
  claimSeconds: 120,
  /** Longest time between two polls of the outbox. */
  pollSeconds: 300,
  /** Mails that development keeps for display instead of sending them. */
  storedMax: 200
} as const

/** Developer accounts and sessions. */
export const developers = {
  /** Lifetime of a session after its last use. */
  sessionSeconds: 30 * secondsPerDay,
  /** Lifetime of a session after the sign-in, however often it is used. */
  sessionSecondsMax: 180 * secondsPerDay,
  nameMaxCharacters: 80,
  /** Validity of the proof of a repeated external sign-in. */
  reauthSeconds: 300,
  inviteCodeMaxCharacters: 128,
  /** Accounts that one invite code lets in. */
  inviteUsesMax: 1_000_000,
  setupTokenMinCharacters: 16,
  setupTokenMaxCharacters: 128,
  /** One-time links into the dashboard, in development: how long they work, and how many there are. */
  signInLinkSeconds: 3600,
  signInLinksMax: 16
} as const

/** Projects, their keys and the dashboard. */
export const projects = {
  nameMaxCharacters: 80,
  /** Includes deleted projects that can still be restored. */
  perDeveloper: 100,
  /** Time for which a deleted project can be restored; then the service removes its data. */
  restorableSeconds: 7 * secondsPerDay,
  /** Keys of one environment that are not revoked. */
  keysPerEnvironment: 100,
  activeDays: 14,
  searchMaxCharacters: 254,
  /** Rooms, and channels, that the live view lists. */
  liveMax: 500,
  /** Voice calls that the live view lists. */
  liveCallsMax: 100,
  /** Interval at which a node writes key usage and player visits, in one statement. */
  usageMillis: 5000,
  /** A node writes the visits of a player once in this time. */
  seenMillis: 300_000,
  /** Players that a node remembers as written. Beyond it, the node asks the database. */
  seenPlayersMax: 200_000,
  visitsPerStatement: 1000,
  /**
   * Interval at which a node reports its live rooms and channels. A report is valid for
   * `liveTrustMillis`.
   */
  liveReportMillis: 2000,
  liveTrustMillis: 10_000
} as const

/** Password hashing. Each hash takes 20 ms of a core and 19 MiB, off the event loop. */
export const passwords = {
  /** Number of concurrent hashes; further ones wait in the queue. */
  concurrency: 2,
  /** Queued hashes of one environment; beyond it 503 `unavailable`. */
  waitingPerTenant: 64
} as const

/** Statements of one process that wait for a connection. The pool's size is a setting. */
export const databasePool = {
  /** Connections of an environment for each free one: one gets at most 80 %, two get 44 % each. */
  share: 4,
  /** Waiting statements and transactions of one environment; beyond it 503 `unavailable`. */
  waitingPerKey: 1000,
  waitMillis: 5000
} as const

/** HTTP requests. */
export const http = {
  /** The largest body of an endpoint that declares no other `BodyMaxBytes`. */
  bodyMaxBytes: 16 * KiB,
  /** Bodies that one process holds together, from the first byte of each to the end of its response. */
  bodiesMaxBytes: 48 * MiB,
  /** Responses of one process that clients have not read yet. */
  unreadMaxBytes: 48 * MiB,
  /** A client that sends or reads more slowly than this loses its connection after a while. */
  slowestBytesPerSecond: 16 * KiB,
  /**
   * Pieces of a body beside one for each `bodyPieceMeanBytes`. A connection with more is cut, and after
   * `fineBodiesMax` such bodies within `fineBodiesSeconds` its address is refused for as long.
   */
  bodyPiecesMax: 1024,
  bodyPieceMeanBytes: 64,
  fineBodiesMax: 8,
  fineBodiesSeconds: 60,
  /** Requests that a connection may send before the response to the first one. */
  pipelinedMax: 32,
  /** New connections that the system keeps while the event loop is busy; it drops those beyond it. */
  acceptBacklogMax: 4096,
  idempotencyKeyMaxCharacters: 128,
  pageDefault: 50,
  pageMax: 100,
  corsMaxAgeSeconds: secondsPerDay
} as const

/** The environment config document. */
export const config = {
  keyMaxCharacters: 48,
  textMaxCharacters: 120,
  longTextMaxCharacters: 500,
  statsMax: 128,
  modesMax: 16,
  redirectUrlsMax: 32,
  allowedOriginsMax: 32,
  hashtagsMax: 5,
  integrityRulesMax: 128,
  cardTitleMaxCharacters: 60,
  linksTextMaxCharacters: 200,
  fillTimeoutSecondsMax: 300,
  p2pPlayersMin: 2,
  p2pPlayersMax: 8,
  submitsPerMinuteMax: 600,
  submitsPerMinuteDefault: 60,
  webhookTimeoutMillisMin: 100,
  webhookTimeoutMillisMax: 5000,
  webhookTimeoutMillisDefault: 1500,
  documentMaxBytes: 256 * KiB,
  /** A pushed document with its white space and escapes. */
  bodyMaxBytes: 1.5 * MiB,
  documentDepthMax: 32,
  /** Problems that the refusal of a document lists. */
  issuesMax: 100
} as const

/** Cloud saves. `dataMaxBytes`, `perPlayer`, `guestBytes` and `environmentBytes` are defaults of settings. */
export const saves = {
  dataMaxBytes: MiB,
  perPlayer: 100,
  /** Bytes of all saves of a guest. */
  guestBytes: 16 * MiB,
  /** Bytes of all saves of an environment. */
  environmentBytes: 50 * GiB,
  /** Maximum age of a node's sum over the saves of an environment. */
  environmentSumSeconds: 10,
  keyMaxCharacters: 64,
  dataDepthMax: 64,
  /** Bytes of a body beside the data: the other fields and white space. */
  bodySlackBytes: 64 * KiB,
  /** Deleted saves of a player whose version is remembered, for at least a day. */
  deletedKept: 1000
} as const

/** Exports of a player's data: one at a time for each player and node. */
export const exports = {
  /** Reads of one process at a time, over all exports. */
  readsMax: 4,
  retryAfterSeconds: 10
} as const

/** Stats. */
export const stats = {
  keysPerReport: 64,
  /** Days for which rejected values are kept, at most `signalsPerEnvironment` of them. */
  signalDays: 30,
  signalsPerEnvironment: 10_000
} as const

/**
 * Requests from one process to servers of developers and to sign-in providers. The service divides
 * both bounds between environments. A request that waits longer, or finds the queue of its
 * environment full, gets 503 `unavailable`.
 */
export const outgoing = {
  answerMaxBytes: 64 * KiB,
  webhooks: {
    permits: 1024,
    share: 1,
    permitsPerKey: 64,
    waitingPerKey: 256,
    waitMillis: 2000
  },
  signIns: { permits: 256, share: 1, permitsPerKey: 64, waitingPerKey: 64, waitMillis: 5000 },
  /** Reports of one player that are verified at a time; further ones wait, then 429. */
  reportsPerPlayer: { permits: Infinity, permitsPerKey: 1, waitingPerKey: 4, waitMillis: 10_000 }
} as const

/** Bans and appeals. */
export const moderation = {
  reasonMaxCharacters: 500,
  noteMaxCharacters: 500,
  /** 366 days. */
  banHoursMax: 8784,
  appealMaxCharacters: 2000,
  responseMaxCharacters: 2000
} as const

/** Retention of the response to an `Idempotency-Key`. */
export const idempotency = { keptSeconds: secondsPerDay } as const

/** Retention of an entry of the audit log. The database refuses earlier deletion. */
export const audit = { keptDays: 400 } as const

/** OAuth sign-in. */
export const oauth = {
  credentialMaxCharacters: 512,
  privateKeyMaxCharacters: 4096,
  nativeClientIdsMax: 8,
  /** Time that a person may take at the provider. */
  stateSeconds: 600,
  /** A name that Apple sends once waits for this long for a completed sign-in. */
  detailsSeconds: 7 * secondsPerDay,
  redirectUrlMaxCharacters: 2048,
  /** One parameter of a provider's callback. */
  returnMaxCharacters: 4096,
  /** The form in which Apple returns: several parameters, with escapes. */
  returnBodyMaxBytes: 64 * KiB,
  idTokenMaxCharacters: 8192,
  /** An id token or a private key, with the other fields and escapes. */
  bodyMaxBytes: 32 * KiB,
  /** Maximum length of a person's name. The service cuts it to the limit of a display name. */
  nameMaxCharacters: 256,
  /** Timeout of a request to a provider. */
  requestMillis: 5000,
  answerMaxBytes: 256 * KiB
} as const

/** Caches of one node. */
export const caches = {
  verifiedTokens: 50_000,
  environments: 1000,
  keys: 10_000,
  /** Players whose existence, name, ban and age band a node caches. */
  playerStatuses: 50_000,
  /** Rate-limit buckets for which a node holds prefetched tokens. */
  tokenAllowances: 50_000,
  /** Sliding windows of which a node remembers that they are full. */
  fullWindows: 50_000,
  /** Host names of hosted apps, unknown ones included. */
  hostedHosts: 10_000,
  /** Environments with sums over their saves. */
  environmentSaves: 10_000
} as const

/** Limits of modules that the API declares and that those modules will enforce. */
export const declared = {
  functionCpuMillisMax: 30_000,
  functionSubRequestsMax: 1000
} as const

/** Prepaid money and metered usage. */
export const money = {
  inviteCreditCents: 500n,
  checkoutCentsMin: 500,
  checkoutCentsMax: 1_000_000,
  /** Time for which a checkout can be paid; the provider allows at most a day. */
  checkoutSeconds: 23 * secondsPerHour,
  returnUrlMaxCharacters: 2048,
  /** An event of the payment provider. */
  eventMaxBytes: 256 * KiB,
  /** Age at which a signed event is refused. */
  eventToleranceSeconds: 300,
  providerMillis: 10_000,
  /** Events and open checkouts that one reconciliation reads, of each. */
  reconciledMax: 10_000,
  /** The provider lists events of this time. */
  reconciledSeconds: 29 * secondsPerDay,
  /** Events before the last reconciliation that the next one reads again. */
  reconciledOverlapSeconds: 2 * secondsPerHour,
  /** Refunds and disputes of payments that are not ours are forgotten after this time. */
  foreignReturnSeconds: 90 * secondsPerDay,
  /** Functions are suspended when money has been owed for this long. */
  owedSeconds: 72 * secondsPerHour,
  /** Time from the end of a month to its charge, in which all nodes store their counts. */
  closingSeconds: secondsPerHour,
  /** Interval at which a node samples connections and calls, and stores its counts. */
  meterMillis: 20_000,
  /** Counts of environments and components that a node holds; beyond it the service drops them. */
  meterCountsMax: 100_000
} as const
