/** Limits of the realtime socket, rooms, channels, matchmaking and the port of runners. */
import { frameMaxBytes, outboxMaxBytes, tokenWarningSeconds } from "./client-limits.ts"

const KiB = 1024
const MiB = 1024 * KiB
const secondsPerHour = 3600
const secondsPerDay = 24 * secondsPerHour

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
  frameMaxBytes,
  /** Frames for a room that wait while the connection takes its seat there. */
  framesAfterEntryMax: 16,
  fragmentsMax: 64,
  bufferedChunksMax: 1024,
  ridMaxCharacters: 64,
  heartbeatSeconds: 20,
  idleSeconds: 45,
  tokenWarningSeconds,
  tokenGraceSeconds: 30,
  /** Unsent bytes of one socket; beyond it, the socket closes with 1013. */
  outboxMaxBytes,
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
  /** Delay of `player_disconnected` when a newer socket replaces one. */
  replacedQuietSeconds: 1,
  hostGraceSeconds: 5,
  /** Room ids that a node tries until one maps to a shard of its own. */
  idTriesMax: 256,
  /** Time for which matchmaking reserves a seat until its player joins. */
  joinDeadlineSeconds: 10,
  /** Absence of a gateway's watch after which its members count as disconnected. */
  watchAbsenceSeconds: 5,
  idleSeconds: 2 * secondsPerHour,
  lifetimeSeconds: secondsPerDay,
  codeCharacters: 6,
  customCodeMinCharacters: 4,
  customCodeMaxCharacters: 12,
  listDefault: 50,
  /** Longest planned time between a change and its snapshot. The guarantee is one second. */
  snapshotMillis: 400,
  /** Wait of a change for its snapshot, in a cluster, after which the room withholds replies. */
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

/** Graces of seats and memberships while players cannot return, counted from the drop. */
export const graces = {
  /** Time for which a grace stands still while players of its environment wait for admission. */
  waitingSeconds: 120,
  /** Longest absence, whatever the reasons for which the grace stood still. */
  absenceSeconds: 600,
  /** A connection that waits longer than this for its admission holds the graces of its environment. */
  admissionMillis: 1000,
  /** Interval at which a node looks for environments whose players wait, here and on other nodes. */
  lookMillis: 500,
  readMillis: 2000,
  /**
   * Time for which a hold outlasts the last wait that was seen: the longest delay of a client between two
   * attempts. Those whose attempts failed because of the others come back within it.
   */
  holdMillis: 15_000,
  /** Environments whose waiting players one node reports. Beyond it, those that wait longest. */
  reportedEnvironmentsMax: 1000
} as const

/** The port on which runners reach each other. */
export const runnerPort = {
  /** The largest message before the other end has proved that it is a runner. */
  handshakeMaxBytes: 1024,
  handshakeSeconds: 3,
  /**
   * Connections that have proved nothing yet; beyond either bound the service closes the oldest
   * one.
   */
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
  /** Players whose removal an activation remembers for nodes that have missed it. */
  removalsMax: 1000,
  /** Anonymous listeners of one open channel. Only their number is public. */
  listenersMax: 100_000,
  dataMaxBytes: 16 * KiB,
  /** A request with two full lists, or with a message whose data has escapes. */
  bodyMaxBytes: 128 * KiB,
  typeMaxCharacters: 64,
  /** Messages from one member to one channel. */
  messagesPerSecond: 10,
  messagesBurst: 20,
  /** Channels whose rate limit a connection remembers, including channels it has left. */
  rateLimitersPerConnection: 64,
  muteSecondsMax: secondsPerDay,
  banSecondsMax: 366 * secondsPerDay,
  /** Time for which a member without a socket stays a member, and an owner stays the owner. */
  graceSeconds: 30,
  /** Lifetime of a client-made channel after its last member left. */
  emptySeconds: 30,
  /**
   * Number of sockets above which joins and leaves are sent in batches, once every
   * `presenceMillis`.
   */
  largeAudience: 100,
  presenceMillis: 1000,
  /** Time for which a large channel collects events before it sends them. */
  flushMillis: 2,
  /**
   * Wait of a channel for its members after a move to another runner, before it sends the member
   * list.
   */
  rejoinMillis: 3000,
  voicePeersMax: 8,
  voiceMembersMax: 100
} as const

/** Voice calls of channels. */
export const voice = {
  /** Duration of a call; then its members join again. */
  callSeconds: 4 * secondsPerHour,
  /** Time for which a member whose connection closed stays in the call. */
  graceSeconds: 10,
  /** Minimum interval between two lists of members. */
  stateMillis: 250,
  /**
   * Delay after which a member of a lost call may join again. It is random, so that not all come at
   * once.
   */
  retryMinMillis: 200,
  retryMaxMillis: 1500,
  signalDataMaxBytes: 8 * KiB,
  sdpMaxCharacters: 32 * KiB,
  /** Frames of one connection to the call of one channel; a join counts as `joinFrames`. */
  framesPerSecond: 6,
  framesBurst: 60,
  joinFrames: 6,
  credentialSeconds: 600,
  /** Speakers that a call through the media server carries at the same time. */
  slots: 8,
  packetsPerSecond: 60,
  /** Packets of a member between two ticks of its media process; one that sends more is cut off. */
  packetsPerTick: 500,
  /** The same while its environment sends more than its share. */
  packetsPerTickBeyondShare: 30,
  /**
   * Packets that a media process receives and sends. One environment may have at most `share` times as
   * many as remain free.
   */
  processPackets: { perSecond: 100_000, share: 4 },
  /** Offers that a member gets until its media counts as failed. */
  offersMax: 3,
  /** Time that a member may take to connect, and may stay disconnected. */
  connectSeconds: 30,
  disconnectedSeconds: 15,
  /** Packets that a media process sends in a second; beyond it, it takes new calls of small senders only. */
  forwardsPerSecond: 60_000,
  /** Joins and memory after which an empty media process is replaced: each join keeps some memory. */
  joinsPerProcess: 5000,
  processReplacedBytes: 512 * MiB,
  /** Maximum memory of a media process. One with more ends, and its members join again. */
  processMaxBytes: 1536 * MiB,
  /** A media process that reports nothing for so long ends, and its members join again. */
  processSilentSeconds: 10,
  /**
   * Joins under way at the media processes of a runner: until the member is connected, and a second at
   * least. One environment may have at most `share` times as many as remain free.
   */
  joinsUnderWay: { permits: 250, share: 4 },
  joinMillis: 1000,
  /**
   * Answers that wait for a media process; more fail with `voice_unavailable`. One environment may
   * have at most `share` times as many as remain free.
   */
  processAnswers: { permits: 1000, share: 4 }
} as const

/** STUN and TURN servers for peer-to-peer connections. */
export const turn = {
  credentialSeconds: secondsPerHour,
  /** Allocations of the embedded server: of one player, and of all. */
  embeddedUserQuota: 16,
  embeddedTotalQuota: 200,
  /** Length below which shared secrets can be guessed by trying. */
  secretMinCharacters: 16
} as const

/** Matchmaking queues. */
export const matchmaking = {
  ticketsPerQueue: 200_000,
  /** Interval at which a queue with tickets looks for rooms that have free seats. */
  openRoomsRefreshMillis: 1000,
  openRoomsMax: 200,
  /**
   * Time for which tickets wait for a room that is being opened. After it another room opens for them: the
   * runner of the first may have died.
   */
  openingMillis: 3000,
  /** Time for which a queue remembers a match, for a gateway that asks again. */
  matchMemorySeconds: 60,
  matchMemoryMax: 50_000
} as const

/** Player sessions: the newest connection of each player, and its room or ticket. */
export const playerSessions = {
  /**
   * Buckets of an environment: enough to spread it over the runners, and few enough for one node to
   * watch all of them.
   */
  buckets: 64,
  /**
   * Sessions of one bucket. Beyond it the bucket removes the longest idle session; without an idle
   * one, it admits no new player.
   */
  perBucket: 100_000,
  /** Time for which a session without a connection is kept. */
  idleSeconds: 60,
  /** Requests that may wait while a session is loaded. */
  waitingPerSession: 32,
  seatsPerStatement: 500
} as const
