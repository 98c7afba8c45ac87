/** Limits of Functions: deployments, secrets, databases, crons, and what is kept of their logs and events. */
import { KiB, MiB } from "../units.ts"

/** Functions of an environment. */
export const functions = {
  cpuMillisDefault: 50,
  cpuMillisMax: 30_000,
  subRequestsDefault: 50,
  subRequestsMax: 1000,
  /** The body of a deployment: its modules in base64. */
  deploymentBodyMaxBytes: 16 * MiB,
  modulesMax: 500,
  /** All modules of a deployment, decoded. */
  modulesMaxBytes: 10 * MiB,
  moduleNameMaxCharacters: 256,
  bindingsMax: 64,
  nameMaxCharacters: 64,
  varsMax: 64,
  varMaxBytes: 5 * KiB,
  cronsMax: 20,
  cronMaxCharacters: 128,
  messageMaxCharacters: 500,
  /** Wrong fields of a deployment that the response lists. */
  issuesMax: 32,
  /** The newest deployments, which are kept beside the live one. */
  keptDeployments: 20,
  /** Names of databases, KV and files that only deleted versions bind; further ones are not listed. */
  keptResourcesMax: 1000,
  secretsMax: 100,
  secretMaxBytes: 24 * KiB,
  /** A secret with the escapes of JSON. */
  secretBodyMaxBytes: 160 * KiB,
  /** Runs of one database: a statement with its parameters. SQLite here reads no longer one. */
  sqlMaxBytes: 100_000,
  sqlParametersMax: 100,
  rowsMax: 1000,
  migrationsMax: 100,
  databaseBodyMaxBytes: 1.5 * MiB,
  /**
   * Keys and files: entries of a page, those that one request deletes, and the characters of a name. A step of
   * either has to stay within the CPU time of a call.
   */
  entriesPerPage: 100,
  entriesPerDelete: 100,
  entriesPerStep: 10,
  entryNameMaxCharacters: 1024,
  /** How long a change waits for the runtime; it may end calls under way first. */
  changeMillis: 15_000,
  /** Crons that one process calls at a time, divided between environments. */
  cronCalls: { permits: 64, share: 4, permitsPerKey: 20, waitingPerKey: 100, waitMillis: 60_000 },
  /** Deployments that one process starts at a time, to see whether they do. */
  validations: { permits: 2, share: 1, permitsPerKey: 1, waitingPerKey: 8, waitMillis: 30_000 }
} as const

/** Log lines of Functions. */
export const functionLogs = {
  keptDays: 7,
  /** The newest lines of an environment, which are kept. */
  keptLines: 20_000,
  lineMaxCharacters: 8 * KiB,
  /** Lines of one environment that one process writes in a second; further ones are counted only. */
  linesPerSecond: 100,
  flushMillis: 1000,
  /** Lines of one process that wait to be written. */
  waitingMax: 10_000,
  pageDefault: 100,
  pageMax: 1000,
  /** A response that follows new lines ends after this time; the client asks for the next ones. */
  followSeconds: 55,
  followPollMillis: 1000,
  /** A line break without a line: it shows that the connection is alive. */
  followBeatSeconds: 5,
  /** Responses of one process that follow log lines. */
  followers: { permits: 256, permitsPerKey: 8, waitingPerKey: 0 }
} as const

/** Messages of queues, and events for the hooks of Functions. */
export const functionDeliveries = {
  messageMaxBytes: 128 * KiB,
  /** Messages of an environment that wait. */
  messagesMax: 10_000,
  messagesMaxBytes: 256 * MiB,
  /** Messages, or events, that one process claims at once, and events that it calls at a time. */
  batchMax: 20,
  eventConcurrency: 10,
  delaySecondsMax: 12 * 3600,
  /** Events of an environment that wait; further ones are dropped. */
  eventsMax: 10_000,
  attemptsMax: 5,
  /** Delay before the second attempt. It doubles with each further one, up to `retrySecondsMax`. */
  retrySeconds: 2,
  retrySecondsMax: 600,
  /** A process that delivers has this long; then another one takes over. */
  claimSeconds: 120,
  pollMillis: 1000,
  /** Environments that one process delivers to at a time. */
  concurrency: 8,
  /** Failed messages are kept for this long, the newest `deadMax` of an environment. */
  deadDays: 7,
  deadMax: 1000,
  /** Dead letters of a page, which has their bodies. */
  deadPageMax: 20,
  /** Bytes of a failed message that the log shows. */
  loggedBytes: 4 * KiB
} as const

/** What Functions have used, in rows of an hour. */
export const functionUsage = {
  flushMillis: 10_000,
  keptDays: 400
} as const
