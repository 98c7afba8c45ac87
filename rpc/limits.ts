/**
 * Limits of the API and bounds of queues, caches and buffers. Each appears once, with its unit in the
 * name.
 */

export { type Throttle, throttles } from "./throttles.ts"

const KiB = 1024
const MiB = 1024 * KiB
const secondsPerHour = 3600
const secondsPerDay = 24 * secondsPerHour

/** Sessions, passwords and single-use codes. */
export const sessions = {
  accessTokenSeconds: 15 * 60,
  refreshTokenSeconds: 90 * secondsPerDay,
  /**
   * Reusing the direct parent of the current refresh token answers `refresh_race` for this long. Later
   * reuse revokes the session.
   */
  refreshRaceSeconds: 10,
  verificationLinkSeconds: secondsPerDay,
  resetLinkSeconds: 30 * 60,
  oauthCodeSeconds: 60,
  transferCodeSeconds: 600,
  passwordMinCharacters: 8,
  passwordMaxCharacters: 256,
  displayNameMaxCharacters: 32
} as const

/** Email addresses and the links in mails. */
export const email = {
  addressMaxCharacters: 254,
  redirectUrlMaxCharacters: 2048,
  tokenMaxCharacters: 128
} as const

/** Session transfer codes. */
export const transfer = {
  codeCharacters: 8,
  /** Longer than the code itself: people type spaces and dashes. */
  codeMaxCharacters: 64
} as const

/** Age signals. */
export const ages = { yearsMax: 150 } as const

/** The mail outbox. */
export const mail = {
  /** Queued mails; beyond it 503 `mail_unavailable`. */
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
  /** A session expires this long after its last use. */
  sessionSeconds: 30 * secondsPerDay,
  nameMaxCharacters: 80,
  /** Shorter codes can be guessed by trying. */
  inviteCodeMinCharacters: 8,
  inviteCodeMaxCharacters: 128
} as const

/** Projects, their keys and the dashboard. */
export const projects = {
  nameMaxCharacters: 80,
  perDeveloper: 100,
  /** Keys of one environment that are not revoked. */
  keysPerEnvironment: 100,
  activeDays: 14,
  searchMaxCharacters: 254,
  /** Rooms, and channels, that the live view lists. */
  liveMax: 500,
  /** Interval at which a node writes key usage and player visits, in one statement. */
  usageMillis: 5000,
  /** Players that a node remembers as counted today. Beyond it, the node asks the database. */
  seenPlayersMax: 200_000,
  /**
   * Interval at which a node reports its live rooms and channels. A report is valid for
   * `liveTrustMillis`.
   */
  liveReportMillis: 2000,
  liveTrustMillis: 10_000
} as const

/** Password hashing. Each hash takes 20 ms of a core and 19 MiB, off the event loop. */
export const passwords = {
  /** Hashes at a time; further ones are queued. */
  concurrency: 2,
  /** Queued hashes; beyond it 503 `unavailable`. */
  waitingMax: 64
} as const

/** HTTP requests. */
export const http = {
  bodyMaxBytes: 1.5 * MiB,
  idempotencyKeyMaxCharacters: 128,
  pageDefault: 50,
  pageMax: 100,
  corsMaxAgeSeconds: secondsPerDay
} as const

/** The realtime socket. */
export const socket = {
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
  frameMaxBytes: 64 * KiB,
  fragmentsMax: 64,
  bufferedChunksMax: 1024,
  ridMaxCharacters: 64,
  heartbeatSeconds: 20,
  idleSeconds: 45,
  tokenWarningSeconds: 60,
  tokenGraceSeconds: 30,
  /** Unsent bytes of one socket; beyond it, the socket closes with 1013. */
  outboxMaxBytes: MiB,
  /** Longest write interval of a busy node: one frame of a 60 Hz game. An idle node writes at once. */
  coalesceMillis: 16,
  framesPerSecond: 100,
  framesBurst: 200,
  /** Tokens that a malformed frame takes from the socket's rate limit. */
  malformedFrameCost: 5,
  dropsUntilAbuse: 200,
  dropsWindowSeconds: 10,
  anonymousFramesPerSecond: 5,
  anonymousFramesBurst: 10,
  anonymousPerAddress: 20,
  /** Share of a node's connections for sockets; the rest is for HTTP requests. */
  shareOfConnections: 5 / 6
} as const

/** Rooms: seats, state and life cycle. */
export const rooms = {
  playersMax: 64,
  typeMaxCharacters: 64,
  sendDataMaxBytes: 16 * KiB,
  sendTargetsMax: 64,
  /** Levels of a message's `data`: what nests deeper overflows the stack that writes it. */
  dataDepthMax: 64,
  signalDataMaxBytes: 8 * KiB,
  metadataMaxBytes: 4 * KiB,
  stateMaxBytes: 64 * KiB,
  playerStateMaxBytes: 16 * KiB,
  stateKeysMax: 256,
  stateKeyMaxCharacters: 64,
  stateDepthMax: 32,
  graceSeconds: 30,
  graceSecondsMax: 300,
  /** When a newer socket replaces one, members see `player_disconnected` only after this time. */
  replacedQuietSeconds: 1,
  hostGraceSeconds: 5,
  /** Room ids that a node tries until one maps to a shard of its own. */
  idTriesMax: 256,
  /** How long matchmaking reserves a seat until its player joins. */
  joinDeadlineSeconds: 10,
  /** After a gateway's watch has been gone for this long, its members count as disconnected. */
  watchAbsenceSeconds: 5,
  idleSeconds: 2 * secondsPerHour,
  lifetimeSeconds: secondsPerDay,
  codeCharacters: 6,
  customCodeMinCharacters: 4,
  customCodeMaxCharacters: 12,
  listDefault: 50,
  /** Longest planned time between a change and its snapshot. The guarantee is one second. */
  snapshotMillis: 400,
  /** In a cluster, a room withholds replies while a change has waited longer than this for its snapshot. */
  snapshotDeadlineMillis: 1000,
  snapshotsPerStatement: 200,
  inputBatchMax: 4096,
  watchBufferItems: 16_384,
  /** Nodes whose last attachment an entity remembers, to ignore a repeated older one. */
  watchersRememberedMax: 256,
  detachedInputsMax: 1024,
  /** Calls of a runner link without a reply at which it waits, and characters at which it closes. */
  linkCallsMax: 8,
  linkWaitingMaxCharacters: 32 * MiB
} as const

/** The port on which runners reach each other. */
export const runnerPort = {
  /** The largest message before the other end has proved that it is a runner. */
  handshakeMaxBytes: 1024,
  handshakeSeconds: 3,
  /** Connections that have proved nothing yet; beyond either bound the oldest one is closed. */
  unauthenticatedMax: 256,
  unauthenticatedPerAddressMax: 64,
  /** The largest frame of a runner. */
  frameMaxBytes: 16 * MiB
} as const

/** Realtime channels. */
export const channels = {
  perConnection: 8,
  nameMaxCharacters: 64,
  generatedNameCharacters: 10,
  membersMax: 1000,
  membersDefault: 100,
  /** Players of each list: `allow`, `speakers`, muted, banned. */
  listMax: 1000,
  /** Anonymous listeners of one open channel. Only their number is public. */
  listenersMax: 100_000,
  dataMaxBytes: 16 * KiB,
  typeMaxCharacters: 64,
  /** Messages from one member to one channel. */
  messagesPerSecond: 10,
  messagesBurst: 20,
  /** Channels whose rate limit a connection remembers, including channels it has left. */
  rateLimitersPerConnection: 64,
  muteSecondsMax: secondsPerDay,
  banSecondsMax: 366 * secondsPerDay,
  /** How long a member without a socket stays a member, and an owner stays the owner. */
  graceSeconds: 30,
  /** How long a client-made channel exists after its last member left. */
  emptySeconds: 30,
  /** With more sockets than this, joins and leaves are sent in batches, once every `presenceMillis`. */
  largeAudience: 100,
  presenceMillis: 1000,
  /** How long a large channel collects events before it sends them. */
  flushMillis: 2,
  /**
   * After a move to another runner, how long a channel waits for its members before it sends the member
   * list.
   */
  rejoinMillis: 3000,
  voicePeersMax: 8,
  voiceMembersMax: 100
} as const

/** STUN and TURN servers for peer-to-peer connections. */
export const turn = {
  credentialSeconds: secondsPerHour,
  /** Shorter shared secrets can be guessed by trying. */
  secretMinCharacters: 16
} as const

/** Matchmaking queues. */
export const matchmaking = {
  ticketsPerQueue: 200_000,
  /** How often a queue with tickets looks for rooms that have free seats. */
  openRoomsRefreshMillis: 1000,
  openRoomsMax: 200,
  /** How long a queue remembers a match, for a gateway that asks again. */
  matchMemorySeconds: 60,
  matchMemoryMax: 50_000
} as const

/** Player sessions: the newest connection of each player, and its room or ticket. */
export const playerSessions = {
  /** Enough to spread an environment over the runners, few enough for one node to watch all of them. */
  buckets: 64,
  /**
   * Sessions of one bucket. Beyond it the longest idle session is removed; without an idle one, no new
   * player is admitted.
   */
  perBucket: 100_000,
  /** How long a session without a connection is kept. */
  idleSeconds: 60,
  /** Requests that may wait while a session is loaded. */
  waitingPerSession: 32,
  seatsPerStatement: 500
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
  documentDepthMax: 32
} as const

/** Cloud saves. `dataMaxBytes` and `perPlayer` are defaults of settings. */
export const saves = {
  dataMaxBytes: MiB,
  perPlayer: 100,
  keyMaxCharacters: 64,
  dataDepthMax: 64,
  /** What a body may contain beside the data: the other fields and white space. */
  bodySlackBytes: 64 * KiB,
  /** Deleted saves whose version is remembered, for each player, for at least a day. */
  deletedKept: 1000
} as const

/** Stats. */
export const stats = {
  keysPerReport: 64,
  /** Rejected values are kept for this long, and at most `signalsPerEnvironment` of them. */
  signalDays: 30,
  signalsPerEnvironment: 10_000
} as const

/** Requests from the service to servers of developers. */
export const outgoing = {
  answerMaxBytes: 64 * KiB,
  connectionsPerServer: 64,
  /** Concurrent requests of one process; further ones are refused. */
  requestsMax: 1024
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

/** How long the response to an `Idempotency-Key` is stored. */
export const idempotency = { keptSeconds: secondsPerDay } as const

/** How long the audit log keeps an entry. The database refuses earlier deletion. */
export const audit = { keptDays: 400 } as const

/** OAuth sign-in. */
export const oauth = {
  credentialMaxCharacters: 512,
  privateKeyMaxCharacters: 4096,
  nativeClientIdsMax: 8,
  /** How long a person may take at the provider. */
  stateSeconds: 600,
  redirectUrlMaxCharacters: 2048,
  /** One parameter of a provider's callback. */
  returnMaxCharacters: 4096,
  idTokenMaxCharacters: 8192,
  /** Longer names are cut to the limit of a display name. */
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
  tokenAllowances: 50_000
} as const

/** Limits of modules that the API declares and that those modules will enforce. */
export const declared = {
  blobMaxBytes: 50 * MiB,
  xProfilesLookupMax: 100,
  functionCpuMillisMax: 30_000,
  functionSubRequestsMax: 1000,
  checkoutCentsMin: 500,
  checkoutCentsMax: 1_000_000,
  inviteCreditCents: 500,
  shareStatsDaysDefault: 30,
  shareStatsDaysMax: 366,
  cardBackgroundMaxBytes: 2 * MiB,
  cardFontMaxBytes: 10 * MiB,
  cardWidthPixels: 1200,
  cardHeightPixels: 600
} as const
