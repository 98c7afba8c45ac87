/** Limits of deployments and hosted apps, and bounds of what serves them. */
import { GiB, KiB, MiB, secondsPerDay } from "../units.ts"

/** Deployments and hosted apps. `environmentBytes` and `retentionDays` are defaults of settings. */
export const hosting = {
  blobMaxBytes: 50 * MiB,
  deploymentMaxBytes: GiB,
  filesMax: 20_000,
  /** The body that names all files of a deployment. */
  manifestMaxBytes: 16 * MiB,
  pathMaxCharacters: 512,
  messageMaxCharacters: 500,
  /** Custom domains of an environment. */
  domainsMax: 10,
  /** Values of TXT records that a response lists, and their length. */
  domainRecordsShown: 5,
  domainRecordMaxCharacters: 255,
  /** DNS queries of one process at a time, divided between environments. */
  domainQueries: { permits: 16, share: 2, permitsPerKey: 4, waitingPerKey: 16, waitMillis: 10_000 },
  /** Stored and expected files of an environment. */
  environmentBytes: 10 * GiB,
  /** The newest deployments, which are kept. */
  keptDeployments: 20,
  /** A deployment is kept for this long after it was live. */
  retentionDays: 90,
  /** Files with a hash in their name are served for this long after their version was live. */
  staleDays: 7,
  /** Deployments of an environment that are not finalized; a further one replaces the oldest. */
  unfinishedMax: 10,
  unfinishedSeconds: secondsPerDay,
  /** A file that no deployment names is kept for this long. */
  orphanSeconds: secondsPerDay,
  /** Decoded bytes of a file that was uploaded compressed, for a client that cannot read that. */
  decodedMaxBytes: 512 * MiB,
  decodedSeconds: 300,
  /** Wrong paths of a manifest that the response lists. */
  issuesMax: 32,
  /** The settings of a deployment, `svc.hosting.json`. */
  settingsMaxBytes: 16 * KiB,
  /** Uploads of one process at a time, divided between environments. */
  uploads: {
    permits: 64,
    share: 4,
    permitsPerKey: 16,
    waitingPerKey: 128,
    waitMillis: 30_000
  },
  /** Files that one process compresses at a time; each takes a thread. */
  compressions: { permits: 2, share: 1, waitingPerKey: 128 },
  /** Files from a bucket that one process keeps on its disk; the default of a setting. */
  diskCacheBytes: 2 * GiB,
  /** Files that one process reads from a bucket at a time, divided between environments. */
  objectDownloads: { permits: 32, share: 4, waitingPerKey: 1024, waitMillis: 30_000 },
  /** Files of the deployments that one process has loaded. */
  cachedFiles: 200_000,
  /** Small files that one process keeps in memory, and the largest of them. */
  bodyCacheBytes: 64 * MiB,
  cachedBodyMaxBytes: 256 * KiB,
  /** Files that one process sends from the disk at a time; a client beyond it gets 503. */
  downloads: { permits: 2048, share: 4, waitingPerKey: 0 },
  /**
   * Pieces of such files in memory. A client holds one until it has read it: a large one while there are
   * some, else a small one.
   */
  pieces: { largeBytes: 256 * KiB, largeMax: 64, smallBytes: 32 * KiB, smallKept: 256 },
  /** Smaller files are not compressed. */
  compressMinBytes: 1024
} as const
