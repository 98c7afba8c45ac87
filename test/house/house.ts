/**
 * The vocabulary of the house rules: rooms, feature words, limits and exceptions.
 *
 * Everything that a contributor may have to edit stands here; the rules themselves are in the
 * neighbouring files. Add an exception only with a reason next to it.
 */

/** The five rooms. The order is the order of the floors: a room imports only rooms before it. */
export const rooms = ["rpc", "sql", "entities", "src", "test"] as const

/** What the files of a folder may import. */
export interface Floor {
  readonly folder: string
  /** Rooms, folders in them, or single files of the repository. */
  readonly may: ReadonlyArray<string>
  /** Packages; `*` at the end stands for any rest. */
  readonly packages: ReadonlyArray<string>
}

/**
 * The arrows `src -> entities -> sql -> rpc -> effect`. The first that contains a file counts.
 */
export const floors: ReadonlyArray<Floor> = [
  { folder: "rpc", may: ["rpc"], packages: ["effect"] },
  { folder: "sql", may: ["sql", "rpc"], packages: ["effect", "@effect/*"] },
  { folder: "entities", may: ["entities", "sql", "rpc"], packages: ["effect", "@effect/*"] },
  // A browser loads the client: no server code, nothing of node.
  { folder: "src/client", may: ["src/client", "rpc"], packages: ["effect"] },
  { folder: "src", may: ["src", "entities", "sql", "rpc", "package.json"], packages: ["*"] },
  {
    folder: "test",
    may: ["test", "src", "entities", "sql", "rpc", "package.json"],
    packages: ["*"]
  }
]

/** The words of the specification, one a feature. The same word names its file in every room. */
export const featureWords = [
  "ages",
  "appeals",
  "audit",
  "channels",
  "config",
  "developers",
  "email",
  "functions",
  "hosting",
  "identities",
  "matchmaking",
  "moderation",
  "money",
  "news",
  "oauth",
  "peers",
  "players",
  "projects",
  "realtime",
  "rooms",
  "saves",
  "sessions",
  "share",
  "stats",
  "system",
  "transfer",
  "voice"
]

/** Words that are no feature: what the service stands on. */
export const infrastructureWords = [
  "cli",
  "client",
  "cluster",
  "connection",
  "crypto",
  "dashboard",
  "database",
  "docs",
  "gather",
  "generate",
  "http",
  "hub",
  "idempotency",
  "invalidation",
  "keys",
  "mail",
  "main",
  "metrics",
  "migrations",
  "observability",
  "outbox",
  "outgoing",
  "postgres",
  "secrets",
  "seed",
  "service",
  "settings",
  "snapshots",
  "testing",
  "throttles",
  "tokens"
]

/** File names that say nothing about their content. */
export const emptyNames = ["index", "utils", "util", "helpers", "helper", "common", "misc"]

/** Sizes that a reader can hold in his head. */
export const maxFileLines = 400
export const maxFunctionLines = 70
export const maxLineLength = 120

/** Load generators run on real time. */
const benchmarks = "test/bench/**"
const loads = [benchmarks, "test/chaos/**", "test/fuzz/**"]

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

/** Clocks, randomness and the environment are services, so that tests run on virtual time. */
export const forbiddenNames: ReadonlyArray<Forbidden> = [
  { name: "Date", instead: "DateTime or Clock of effect", allowed: [benchmarks] },
  { name: "Date.now", instead: "Clock.currentTimeMillis", allowed: [benchmarks] },
  { name: "performance.now", instead: "Clock.currentTimeNanos", allowed: loads },
  { name: "Math.random", instead: "Random of effect", allowed: [benchmarks] },
  // A process hands its environment on to the processes that it starts.
  { name: "process.env", instead: "Config of effect, in src/settings.ts", allowed: loads },
  { name: "node:process", instead: "Config of effect, in src/settings.ts", allowed: [] },
  { name: "setTimeout", instead: state, within: ["test/**/*.test.ts"], allowed: [] },
  { name: "node:timers/promises", instead: state, within: ["test/**/*.test.ts"], allowed: [] },
  { name: "Effect.sleep", instead: state, within: ["test/**/*.test.ts"], allowed: [] }
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
