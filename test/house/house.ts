/**
 * The vocabulary of the house rules: rooms, feature words, limits and exceptions.
 *
 * Everything that a contributor may have to edit stands here; the rules themselves are in the
 * neighbouring files. Add an exception only with a reason next to it.
 */
import { features } from "#rpc/features"

/** The folders at the top that hold TypeScript: the rooms. */
export const rooms = ["rpc", "sql", "entities", "src", "test"] as const

/** All folders at the top, folders with a leading dot apart. */
export const topLevel: ReadonlyArray<string> = [...rooms, "docs", "deploy"]

/** The parts of `src`; every other part is reached as `#part/name`. */
export const parts: ReadonlyArray<string> = ["server", "client", "cli", "testing", "dashboard"]

/** The floors of `src/server`, from the lowest up. A floor imports itself and the floors below. */
export const serverFloors: ReadonlyArray<string> = [
  "platform",
  "cluster",
  "links",
  "features",
  "http",
  "gateway",
  "telemetry"
]

/** What the files of a folder may import. */
export interface Floor {
  readonly folder: string
  /** Rooms, folders in them, or single files of the repository. */
  readonly may: ReadonlyArray<string>
  /** Packages; `*` at the end stands for any rest. */
  readonly packages: ReadonlyArray<string>
}

const server = (floor: string) => `src/server/${floor}`

const below = (floor: string) => serverFloors.slice(0, serverFloors.indexOf(floor) + 1).map(server)

/**
 * The arrows, from the top down: telemetry, gateway, http, features, links, cluster, platform, entities,
 * sql, rpc, effect. The first that contains a file counts.
 */
export const floors: ReadonlyArray<Floor> = [
  { folder: "rpc", may: ["rpc"], packages: ["effect"] },
  { folder: "sql", may: ["sql", "rpc"], packages: ["effect", "@effect/*"] },
  { folder: "entities", may: ["entities", "sql", "rpc"], packages: ["effect", "@effect/*"] },
  // The entry for TypeScript servers is the definitions themselves.
  { folder: "src/client/effect", may: ["src/client/effect", "rpc"], packages: ["effect"] },
  { folder: "src/client/react", may: ["src/client"], packages: ["react"] },
  // A browser loads the client: no server code, nothing of node, no package.
  { folder: "src/client", may: ["src/client", "rpc"], packages: [] },
  {
    // A browser loads the dashboard, too. Of the definitions and of effect it uses types only.
    folder: "src/dashboard",
    may: ["src/dashboard", "src/client", "rpc"],
    packages: [
      "preact",
      "preact-iso",
      "@preact/signals",
      "@codemirror/*",
      "vscode-json-languageservice",
      "vscode-languageserver-types",
      "effect"
    ]
  },
  { folder: "src/cli", may: ["src/cli", "rpc", "package.json"], packages: ["*"] },
  ...serverFloors.map((floor) => ({
    folder: server(floor),
    may: [...below(floor), "entities", "sql", "rpc", "package.json"],
    packages: ["*"]
  })),
  {
    folder: "src/server",
    may: ["src/server", "entities", "sql", "rpc", "package.json"],
    packages: ["*"]
  },
  {
    folder: "src/testing",
    may: ["src/testing", "src/client", "src/server", "entities", "sql", "rpc", "package.json"],
    packages: ["*"]
  },
  {
    folder: "test",
    may: ["test", "src", "entities", "sql", "rpc", "package.json"],
    packages: ["*"]
  }
]

/**
 * The files that make a known caller: each has authenticated it before. The call passes for one with the
 * secret key of the environment.
 */
export const knownCallerMakers: ReadonlyArray<string> = [
  "src/server/features/functions/server-api.ts",
  "src/server/http/agent/endpoint.ts"
]

/** The file that hands the known caller of a call to the middleware. */
export const knownCallerProvider = "src/server/platform/in-process.ts"

/** The words of the features. The same word names its file or folder in every room. */
export const featureWords: ReadonlyArray<string> = features.map(({ word }) => word)

/**
 * Files that read what the features declare, so that a new feature edits none of them. Each has the features
 * that it may import all the same, beside its own.
 */
export const collectors: Readonly<Record<string, ReadonlyArray<string>>> = {
  // What the start of the service needs.
  "src/server/app.ts": ["developers", "functions", "projects"],
  // The refresh token proves a deletion.
  "rpc/player-data.ts": ["sessions"],
  "sql/player-data/repository.ts": [],
  "src/server/features/player-data/service.ts": ["moderation", "players"]
}

/** Words of `sql` that are no feature: what repositories stand on, what platform and cluster store. */
export const storageWords = [
  "backup",
  "batching",
  "connection-shares",
  "database",
  "idempotency",
  "mail",
  "migrations",
  "rate-windows",
  "runners",
  "single-use-codes",
  "spent-responses",
  "sweep-claims",
  "throttles"
]

/** File names that say nothing about their content. */
export const emptyNames = ["index", "utils", "util", "helpers", "helper", "common", "misc"]

/** Sizes that a reader can hold in his head. */
export const maxFileLines = 400
export const maxFunctionLines = 70
export const maxLineLength = 120

/** Files that `npm run generate` writes. Nobody reads them from start to end. */
export const generatedFiles: ReadonlyArray<string> = ["src/client/wire.ts", "rpc/openapi.json"]

/** Load generators run on real time. */
const benchmarks = "test/bench/**"
const loads = [benchmarks, "test/chaos/**", "test/fuzz/**"]

/** The client runs without Effect: its clock and randomness are behind one interface. */
const clientTimers = "src/client/timers.ts"

/** The dashboard shows times in the viewer's zone, and runs without Effect, too. */
const dashboardTimes = "src/dashboard/core/time.ts"

/** What a test waits for instead of time. */
const state = "a wait on state, or TestClock.adjust"

/** A global, a member of a global or a module that code may not use, except in the files of `allowed`. */
export interface Forbidden {
  readonly name: string
  readonly instead: string
  /** Globs of the files that the rule is about; all when absent. */
  readonly within?: ReadonlyArray<string>
  readonly allowed: ReadonlyArray<string>
}

/** What writes to a terminal. Text of others must not reach one with its control characters. */
const writers = [
  ...["log", "error", "warn", "info", "debug", "dir", "table"].flatMap((method) => [
    `Console.${method}`,
    `console.${method}`
  ]),
  ...["process", "stdio", "Stdio"].flatMap((owner) => [`${owner}.stdout`, `${owner}.stderr`])
]

/** Clocks, randomness and the environment are services, so that tests run on virtual time. */
export const forbiddenNames: ReadonlyArray<Forbidden> = [
  { name: "Date", instead: "DateTime or Clock of effect", allowed: [benchmarks, dashboardTimes] },
  {
    name: "Date.now",
    instead: "Clock.currentTimeMillis",
    allowed: [benchmarks, clientTimers, dashboardTimes]
  },
  {
    name: "performance.now",
    instead: "Clock.currentTimeNanos",
    allowed: [...loads, clientTimers, dashboardTimes]
  },
  { name: "Math.random", instead: "Random of effect", allowed: [benchmarks, clientTimers] },
  // A process hands its environment on to the processes that it starts.
  {
    name: "process.env",
    instead: "Config of effect, in src/server/platform/settings",
    allowed: [...loads, "src/cli/vite/local-service.ts", "test/support/cli/svc-process.ts"]
  },
  {
    name: "node:process",
    instead: "Config of effect, in src/server/platform/settings",
    allowed: []
  },
  ...["String", "Int", "Redacted", "option"].map((part) => ({
    name: `Config.${part}`,
    instead: "textOf a setting, or Settings: each variable stands in one table",
    within: ["src/server/**"],
    allowed: [
      "src/server/platform/settings/table.ts",
      // These variables are those of npm and of OpenTelemetry.
      "src/server/platform/npm-parent.ts",
      "src/server/telemetry/traces.ts"
    ]
  })),
  ...writers.map((name) => ({
    name,
    instead: "print, note or report of src/cli/output.ts, which escape control characters",
    within: ["src/cli/**"],
    // Its colours depend on the terminal.
    allowed: ["src/cli/output.ts"]
  })),
  { name: "setTimeout", instead: state, within: ["test/**/*.test.ts"], allowed: [] },
  { name: "node:timers/promises", instead: state, within: ["test/**/*.test.ts"], allowed: [] },
  { name: "Effect.sleep", instead: state, within: ["test/**/*.test.ts"], allowed: [] },
  {
    name: "pause",
    instead: state,
    within: ["test/**/*.test.ts"],
    // The engine has no hook that says when it has read its list of runners.
    allowed: ["test/cluster/single-node.test.ts"]
  }
]

/** What makes emitters of errors, by module: requests, sockets, servers, streams and processes. */
export const emitterModules: Readonly<Record<string, ReadonlyArray<string>>> = {
  "node:http": ["request", "get", "createServer"],
  "node:https": ["request", "get", "createServer"],
  "node:net": ["connect", "createConnection", "createServer", "Server", "Socket"],
  "node:tls": ["connect", "createServer"],
  "node:dgram": ["createSocket"],
  "node:child_process": ["fork", "spawn"],
  "node:worker_threads": ["Worker"],
  "node:stream": ["Duplex", "PassThrough", "Readable", "Transform", "Writable"],
  "node:fs": ["createReadStream", "createWriteStream"],
  "node:zlib": [
    "createBrotliCompress",
    "createBrotliDecompress",
    "createDeflate",
    "createGunzip",
    "createGzip",
    "createInflate"
  ],
  ws: ["WebSocket", "WebSocketServer"]
}

/** Files whose emitters have their listeners elsewhere. */
export const emitterExceptions: ReadonlyArray<{ readonly path: string; readonly why: string }> = [
  { path: "src/server/features/functions/compiler/capture.ts", why: "its streams never fail" },
  // Tables of compressions, which a pipeline of the same file calls.
  { path: "src/server/features/hosting/blobs.ts", why: "a pipeline listens" },
  { path: "src/server/features/hosting/upload.ts", why: "a pipeline listens" }
]

/** Marks of unfinished or silenced code, forbidden in comments. */
export const forbiddenMarks = [
  "TODO",
  "FIXME",
  "XXX",
  "@ts-ignore",
  "@ts-expect-error",
  "@ts-nocheck"
]

/** A wording that code and docs may not use, and what to write in its place. */
export interface BannedWording {
  readonly pattern: RegExp
  readonly instead: string
}

/** Words and phrases of a private language; see `CONTRIBUTING.md` for the rules of writing. */
export const bannedWordings: ReadonlyArray<BannedWording> = [
  { pattern: /\btold\b|\btells\b/i, instead: "name who sends what: notified, returns, reports" },
  { pattern: /\bwhoever\b/i, instead: "name the actor" },
  { pattern: /\banew\b/i, instead: "again" },
  { pattern: /numbers? that only grows?/i, instead: "monotonic counter" },
  { pattern: /\bdeaf\b/i, instead: "fenced, or reads nothing" },
  { pattern: /\b(?:come|comes|coming|came) to nothing\b/i, instead: "failed" },
  { pattern: /\b(?:runner|peer|node)s? (?:is|are|was|were) out\b/i, instead: "evicted" }
]

/** Citations of documents that a reader of the repository does not have. */
export const foreignCitations: ReadonlyArray<RegExp> = [
  /\bspec(?:ification)? (?:section|\d)/i,
  /\bdecisions? \d+\.\d/i,
  /\bdesign section\b/i,
  /\b(?:spec|decisions|design|writing|findings)\.md\b/
]

/** First words of a test name that does not read alone, since its subject stands in the group around it. */
export const fragmentStarts: ReadonlyArray<string> = [
  "also",
  "and",
  "are",
  "can",
  "from",
  "has",
  "have",
  "is",
  "it",
  "its",
  "may",
  "must",
  "of",
  "over",
  "that",
  "they",
  "to",
  "was",
  "were",
  "which",
  "whose",
  "with"
]
