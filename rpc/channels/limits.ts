/** Limits of realtime channels. */
import { KiB, secondsPerDay } from "../units.ts"

export const channelLimits = {
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
