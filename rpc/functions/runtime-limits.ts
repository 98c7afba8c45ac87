/** Bounds of what runs a player's function: its processes, calls, messages and output. */
import { MiB } from "../units.ts"

export const functionRuntime = {
  /** CPU time in which a validated deployment has to listen, and the longest wait for it. */
  startCpuMillis: 2000,
  startMillis: 15_000,
  /** Milliseconds until a process has to listen that has been valid before, on a busy machine. */
  restartMillis: 15_000,
  /** Milliseconds that a configuration may take to compile, with the start of the compiler. */
  compileMillis: 20_000,
  compilationsWaiting: 100,
  /** Milliseconds without a compilation after which the compiler ends. */
  compilerIdleMillis: 600_000,
  /** Processes that start at once on a runner. */
  startsAtOnce: 2,
  startsWaiting: 200,
  /** Limits that the operating system holds a process to. */
  dataBytes: 1024 * MiB,
  openFiles: 4096,
  threads: 256,
  /** Calls of an environment that wait for its process, and for how long. */
  callsWaiting: 256,
  callWaitMillis: 20_000,
  /** Calls and sockets of an environment under way. */
  callsMax: 1000,
  socketsMax: 1000,
  /** Milliseconds until the headers of a response in which no part of the body moves. */
  responseMillis: 30_000,
  /** Milliseconds for which a connection to a process is kept for the next call. */
  idleConnectionMillis: 3000,
  /** The same for a call that another runner passes on, with its wait for the process. Ids of calls are as old. */
  passedResponseMillis: 60_000,
  bodyMaxBytes: 100 * MiB,
  /** Largest body that is kept for the time in which its request may have to be sent again. */
  repeatedMaxBytes: 16 * 1024,
  /** Responses of statements, migrations, crons and queues. */
  replyMaxBytes: 16 * MiB,
  /** Operations that one runner sends to another; a batch of messages is the largest. */
  operationMaxBytes: 64 * MiB,
  queryRows: 1000,
  /** Milliseconds in which calls under way may end before a new version starts. */
  drainMillis: 10_000,
  /** Ends for CPU time, memory or a crash within a minute that suspend an environment. */
  killsPerMinute: 10,
  /** Milliseconds without a call after which a process ends. */
  idleMillis: 300_000,
  /** Log lines of an environment in a second, and the most bytes of a line. */
  logLinesPerSecond: 100,
  logLinesWaiting: 1000,
  logLineBytes: 8192,
  logFlushMillis: 500,
  /** Messages of a queue: bytes of one, messages of one call, and the longest delay. */
  messageMaxBytes: 128 * 1024,
  messagesPerSend: 100,
  messageDelaySeconds: 43_200
} as const

/** What an environment stores on the disk of its runner. */
export const functionStorage = {
  megabytesDefault: 1024,
  /** Room between the limit, at which bindings refuse to add, and the ceiling, at which code stops. */
  ceilingShare: 0.25,
  ceilingMinBytes: 16 * MiB,
  /** Bytes that an entry of the file system counts at least, even of an empty file. */
  entryMinBytes: 4096,
  /** Milliseconds between two looks at what the process of an environment has written. */
  checkMillis: 100,
  /** Milliseconds between two measurements: at most, at least, and while it is unknown what is written. */
  measureMillis: 5000,
  measureMinMillis: 250,
  measureBlindMillis: 1000,
  /** A measurement is followed by a rest of this many times its duration. */
  measureRestFactor: 4,
  measureTimeoutMillis: 60_000,
  /** Measurements of a runner at once. */
  measuredAtOnce: 2,
  /** Bytes that a process writes before it is worth a look. */
  writtenMinBytes: MiB,
  /** Databases that are compacted: bytes of a file, the share that is free, files at a time, duration. */
  compactMinBytes: MiB,
  compactFreeShare: 0.25,
  compactedMax: 64,
  compactMillis: 120_000,
  /** Values without a key that are removed: bytes that make it worth a stop, and milliseconds of age. */
  keylessMinBytes: MiB,
  keylessMinMillis: 60_000,
  /** Milliseconds between two tries to compact, and characters of a problem that are logged. */
  compactEveryMillis: 60_000,
  problemMaxCharacters: 2000,
  /** Space of the disk that functions leave to others, and how often it is read. */
  reserveMegabytesDefault: 512,
  diskCheckMillis: 5000
} as const

/** CPU time of functions that the operator may bound. */
export const functionCpu = {
  /** Seconds of CPU time that an environment may use in a minute, whatever uses them. */
  secondsPerMinuteDefault: 30,
  secondsPerMinuteMax: 3600
} as const

/** Snapshots of the data of functions. */
export const functionSnapshots = {
  secondsDefault: 10,
  /** A snapshot that took long is followed by a rest of this many times its duration. */
  restFactor: 4,
  /** Newest snapshots of an environment, which are kept. */
  kept: 2,
  /** Bytes of an object. A smaller file shares one with others. */
  objectBytes: MiB,
  /** Objects that are written or read at once. */
  objectsAtOnce: 8,
  /** An object of which less is used is replaced. */
  usedShareMin: 0.5,
  /** Databases that one cut pins; the process stands still meanwhile. */
  databasesPinned: 256,
  /** Pages of a database that are copied in one step. */
  pagesPerStep: 2000,
  /** Tries to pause a process that is just starting, and the time between them. */
  triesMax: 200,
  retryMillis: 100,
  /** Objects that are removed in one transaction. */
  removedAtOnce: 50,
  /** How often it is checked which snapshots are due, and those that are taken at once. */
  dueCheckMillis: 500,
  takenAtOnce: 2,
  /** Snapshots and restores of a runner at once; one of an environment. */
  work: { permits: 8, permitsPerKey: 1, waitingPerKey: 16 }
} as const

/** Leases of runners on the functions of environments, and calls between runners. */
export const functionLeases = {
  /** Milliseconds from the last renewal until another runner may take over. */
  leaseMillis: 6000,
  renewMillis: 1000,
  /** Milliseconds after which a renewal counts as failed. */
  renewTimeoutMillis: 2000,
  /** Milliseconds without a renewal after which the holder ends its processes; before its lease does. */
  fenceMillis: 4000,
  fenceCheckMillis: 200,
  /** Milliseconds between two looks for the holder while there is none that answers. */
  retryMillis: 50,
  /** Milliseconds until a take-over or a last snapshot that has failed is tried again, and how often. */
  failureMillis: 1000,
  snapshotRetries: 3,
  /** Milliseconds after which a runner looks again where an environment is. */
  foundMillis: 60_000,
  /** Milliseconds in which calls may end before an environment moves. */
  handOverMillis: 5000,
  /** Requests of clients that a runner passes on for an environment, and that wait for its holder. */
  passedMax: 2000,
  /** Processes of other runners whose calls are remembered: more than a cluster has. */
  sendersRemembered: 256,
  /** Connections to another runner that are kept for the next request. */
  idleConnections: 64,
  idleConnectionMillis: 30_000
} as const
