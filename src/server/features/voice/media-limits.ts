/** Limits of the media of voice calls: rooms, processes, and what waits for them. */
import { MiB } from "#rpc/units"

export const mediaLimits = {
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
  waitingAnswers: { permits: 1000, share: 4 }
} as const
