/**
 * Every limit of the interface (spec section 8) and every bound of a queue, cache or buffer that a
 * caller can meet, each once, with its unit in the name.
 */

export { type Throttle, throttles } from "./throttles.ts"

const KiB = 1024
const MiB = 1024 * KiB
const secondsPerHour = 3600
const secondsPerDay = 24 * secondsPerHour

/** Sessions and single-use codes (spec sections 4.1, 5 and 8). */
export const sessions = {
  accessTokenSeconds: 15 * 60,
  refreshTokenSeconds: 90 * secondsPerDay,
  /** How long the immediate parent of a refresh token answers `refresh_race` instead of revoking. */
  refreshRaceSeconds: 10,
  verificationLinkSeconds: secondsPerDay,
  resetLinkSeconds: 30 * 60,
  oauthCodeSeconds: 60,
  transferCodeSeconds: 600,
  passwordMinCharacters: 8,
  passwordMaxCharacters: 256,
  displayNameMaxCharacters: 32
} as const

/** Email and the links in mails (spec sections 4.1 and 8, decisions 3.2.4-5). */
export const email = {
  addressMaxCharacters: 254,
  redirectUrlMaxCharacters: 2048,
  tokenMaxCharacters: 128
} as const

/** Codes for another browser (spec section 3, decisions 3.2.15). */
export const transfer = {
  codeCharacters: 8,
  /** As people write one: with spaces and dashes. */
  codeMaxCharacters: 64
} as const

/** Age signals (decisions 3.2.13). */
export const ages = { yearsMax: 150 } as const

/** Mails that leave the service. */
export const mail = {
  /** Mails that wait to be sent; beyond it 503 `mail_unavailable`. */
  waitingMax: 10_000,
  /** Tried at a time by a process. */
  concurrency: 5,
  attemptsMax: 10,
  /** From the first failure to the next attempt; then twice as long, and so on. */
  retrySeconds: 30,
  retrySecondsMax: secondsPerHour,
  /** How long an attempt may take, and after how long another process takes over. */
  attemptSeconds: 60,
  claimSeconds: 120,
  /** How often a process looks, at least, for what others have left. */
  pollSeconds: 300,
  /** Shown in development, where they are not sent. */
  storedMax: 200
} as const

/** Developers' accounts and sessions (spec section 4.9). */
export const developers = {
  /** A session ends this long after it was last used. */
  sessionSeconds: 30 * secondsPerDay,
  nameMaxCharacters: 80,
  /** Codes shorter than this can be found by trying. */
  inviteCodeMinCharacters: 8,
  inviteCodeMaxCharacters: 128
} as const

/** Projects (spec section 4.9). */
export const projects = {
  nameMaxCharacters: 80,
  perDeveloper: 100,
  /** Keys of an environment that are not revoked. */
  keysPerEnvironment: 100,
  activeDays: 14,
  searchMaxCharacters: 254,
  /** Rooms, and channels, of the live view. */
  liveMax: 500,
  /** How often uses of keys and visits of players are written, all in one statement. */
  usageMillis: 5000,
  /** Players whom a node knows to have counted today; then it asks the database again. */
  seenPlayersMax: 200_000,
  /** How often a node says what is alive on it, and how long it is believed. */
  liveReportMillis: 2000,
  liveTrustMillis: 10_000
} as const

/** Hashing of passwords: each takes 20 ms of a core and 19 MiB, off the event loop. */
export const passwords = {
  /** Hashed at a time; the others wait. */
  concurrency: 2,
  /** Beyond it 503 `unavailable`. */
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

/** The realtime socket (spec section 4.4 and 8). */
export const socket = {
  authFrameSeconds: 5,
  /** A node that is too busy to answer the first frame for so long gives the socket to another. */
  admitSeconds: 15,
  /** Frames that may follow the first before it is answered; together no larger than one. */
  earlyFramesMax: 32,
  frameMaxBytes: 64 * KiB,
  fragmentsMax: 64,
  bufferedChunksMax: 1024,
  ridMaxCharacters: 64,
  heartbeatSeconds: 20,
  idleSeconds: 45,
  tokenWarningSeconds: 60,
  tokenGraceSeconds: 30,
  /** Unsent bytes of one socket; beyond it the consumer is slow and is closed with 1013. */
  outboxMaxBytes: MiB,
  /** A busy node writes to its sockets once a frame of 60 a second; a quiet one at once. */
  coalesceMillis: 16,
  framesPerSecond: 100,
  framesBurst: 200,
  /** What a frame that cannot be decoded costs in the bucket. */
  malformedFrameCost: 5,
  dropsUntilAbuse: 200,
  dropsWindowSeconds: 10,
  anonymousFramesPerSecond: 5,
  anonymousFramesBurst: 10,
  anonymousPerAddress: 20,
  /** Of all connections that a node takes; the rest is for requests. */
  shareOfConnections: 5 / 6
} as const

/** Rooms (spec sections 4.4 and 8, decisions on seats, state and life cycle). */
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
  /** A replaced socket is told to the others only when its successor takes longer than this. */
  replacedQuietSeconds: 1,
  hostGraceSeconds: 5,
  /** How long a seat given by matchmaking waits for its player to come in. */
  joinDeadlineSeconds: 10,
  /** A gateway that stops watching loses its members' seats to the grace after this. */
  watchAbsenceSeconds: 5,
  idleSeconds: 2 * secondsPerHour,
  lifetimeSeconds: secondsPerDay,
  codeCharacters: 6,
  customCodeMinCharacters: 4,
  customCodeMaxCharacters: 12,
  listDefault: 50,
  /** Longest time between a change and its snapshot (the promise is one second). */
  snapshotMillis: 400,
  /** In a cluster nothing is granted while a change has waited longer than this for its snapshot. */
  snapshotDeadlineMillis: 1000,
  snapshotsPerStatement: 200,
  inputBatchMax: 4096,
  watchBufferItems: 16_384,
  detachedInputsMax: 1024,
  /** Unsent bytes of a line; beyond it the other node does not keep up and the line ends. */
  linkBufferMaxBytes: 64 * MiB,
  /** A room that is welcomed back to by 64 players, each with all its state, is one frame. */
  linkFrameMaxBytes: 256 * MiB
} as const

/** Realtime channels (spec sections 4.5 and 8, decisions 3.9). */
export const channels = {
  perConnection: 8,
  nameMaxCharacters: 64,
  generatedNameCharacters: 10,
  membersMax: 1000,
  membersDefault: 100,
  /** Players of each list: `allow`, `speakers`, muted, banned. */
  listMax: 1000,
  /** Anonymous listeners of one open channel; they are counted, never listed. */
  listenersMax: 100_000,
  dataMaxBytes: 16 * KiB,
  typeMaxCharacters: 64,
  /** What one member may send to one channel. */
  messagesPerSecond: 10,
  messagesBurst: 20,
  /** Channels whose pace a connection keeps, those it has left among them. */
  rateLimitersPerConnection: 64,
  muteSecondsMax: secondsPerDay,
  banSecondsMax: 366 * secondsPerDay,
  /** How long a member without a socket stays one, and an owner the owner. */
  graceSeconds: 30,
  /** How long a client-made channel outlives its last member. */
  emptySeconds: 30,
  /** A channel with more sockets than this tells joins and leaves together, once a second. */
  largeAudience: 100,
  presenceMillis: 1000,
  /** How long what a large channel tells may wait for more to go with it. */
  flushMillis: 2,
  /** After a move, how long the channel gathers its members before they are told who is in. */
  rejoinMillis: 3000,
  voicePeersMax: 8,
  voiceMembersMax: 100
} as const

/** STUN and TURN servers for peer-to-peer connections. */
export const turn = {
  credentialSeconds: secondsPerHour,
  /** Shared secrets shorter than this can be found by trying. */
  secretMinCharacters: 16
} as const

/** Matchmaking queues. */
export const matchmaking = {
  ticketsPerQueue: 200_000,
  /** How often a queue looks again for rooms with free seats while tickets wait. */
  openRoomsRefreshMillis: 1000,
  openRoomsMax: 200,
  /** How long a queue remembers a match, for a gateway that asks again. */
  matchMemorySeconds: 60,
  matchMemoryMax: 50_000
} as const

/** Players' sessions: which connection of a player is the newest, and where the player is. */
export const playerSessions = {
  /** Enough to spread an environment over the runners, few enough that a node watches them all. */
  buckets: 64,
  /** Beyond it the session idle for longest makes room; when none is idle nobody else comes in. */
  perBucket: 100_000,
  /** A session without a connection is remembered for this long. */
  idleSeconds: 60,
  /** What may wait for a session that is being looked up. */
  waitingPerSession: 32,
  seatsPerStatement: 500
} as const

/** The environment config document (spec section 2.2). */
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

/** Cloud saves (spec section 4.3); the first two are defaults of settings. */
export const saves = {
  dataMaxBytes: MiB,
  perPlayer: 100,
  keyMaxCharacters: 64,
  dataDepthMax: 64,
  /** What a body may hold beside the data: the other fields, white space. */
  bodySlackBytes: 64 * KiB,
  /** Versions of deleted saves are remembered for at least a day and for this many a player. */
  deletedKept: 1000
} as const

/** Stats (spec sections 2.2 and 4.3). */
export const stats = {
  keysPerReport: 64,
  /** Rejected values are kept for the operator: so long, and so many an environment. */
  signalDays: 30,
  signalsPerEnvironment: 10_000
} as const

/** Requests that the service makes to servers of developers. */
export const outgoing = {
  answerMaxBytes: 64 * KiB,
  connectionsPerServer: 64,
  /** Requests under way of one process; more are refused. */
  requestsMax: 1024
} as const

/** Bans and appeals (spec sections 4.2 and 4.8, decisions 3.3). */
export const moderation = {
  reasonMaxCharacters: 500,
  noteMaxCharacters: 500,
  /** 366 days. */
  banHoursMax: 8784,
  appealMaxCharacters: 2000,
  responseMaxCharacters: 2000
} as const

/** How long the answer to an `Idempotency-Key` is kept. */
export const idempotency = { keptSeconds: secondsPerDay } as const

/** How long the audit log keeps an entry; the database refuses to forget one sooner. */
export const audit = { keptDays: 400 } as const

/** External sign-in (spec sections 4.1 and 5, rules 9 to 11). */
export const oauth = {
  credentialMaxCharacters: 512,
  privateKeyMaxCharacters: 4096,
  nativeClientIdsMax: 8,
  /** How long a person may take at the provider. */
  stateSeconds: 600,
  redirectUrlMaxCharacters: 2048,
  /** A parameter of what a provider sends back. */
  returnMaxCharacters: 4096,
  idTokenMaxCharacters: 8192,
  /** Names are cut to what a display name may hold. */
  nameMaxCharacters: 256,
  /** Requests to providers. */
  requestMillis: 5000,
  answerMaxBytes: 256 * KiB
} as const

/** Caches of one node. */
export const caches = {
  verifiedTokens: 50_000,
  environments: 1000,
  keys: 10_000,
  /** Players of whom a node knows whether they are banned. */
  playerStatuses: 50_000,
  /** Throttle buckets that a node holds tokens of. */
  tokenAllowances: 50_000
} as const

/** Limits of modules that are declared by the interface and enforced where those modules stand. */
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
