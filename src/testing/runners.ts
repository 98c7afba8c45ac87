/**
 * Runner processes for tests: start, stop, kill, and find the owner of a room. Each is the real service
 * in its own process, on one Postgres, so the tests cover deploys and crashes.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Data, Effect, Schedule, Schema, type Scope } from "effect"
import { freePort as findFreePort } from "#server/platform/settings/free-port"
import type { TestTarget } from "./players.ts"

/** A runner failed to start or stop. The message ends with its output. */
export class RunnerError extends Data.TaggedError("RunnerError")<{ readonly message: string }> {}

/** A running process of the service. */
export interface Runner {
  readonly url: string
  readonly socketUrl: string
  /** The node id in `rooms.node` and `GET /readyz`. */
  readonly node: string
  readonly pid: number
  /** Sends SIGTERM and waits for the exit, with a handover of its shards. */
  readonly stop: Effect.Effect<void>
  /** Sends SIGKILL: the process ends at once. */
  readonly kill: Effect.Effect<void>
  readonly signal: (signal: NodeJS.Signals) => Effect.Effect<void>
  /** Output of the runner so far. */
  readonly output: () => string
}

const main = fileURLToPath(new URL("../server/main.ts", import.meta.url))
/** Code that Node has compiled before: a runner that finds it starts with a fifth less CPU time. */
const compileCache = fileURLToPath(new URL("../../node_modules/.cache/runners", import.meta.url))
const outputMax = 64 * 1024
/** Folders of the programs that guard the processes of functions. */
const systemPath = "/usr/sbin:/usr/bin:/sbin:/bin"
/** Waits up to 100 seconds for a start, which takes two on a machine that is not busy. */
const startRetries = { times: 1000, schedule: Schedule.spaced(100) } as const

/** Returns a port that is probably free. */
export const freePort: Effect.Effect<number> = Effect.orDie(findFreePort("127.0.0.1"))

const exited = (child: ChildProcess): Effect.Effect<void> =>
  Effect.callback((resume) => {
    if (child.exitCode !== null || child.signalCode !== null) return resume(Effect.void)
    child.once("exit", () => resume(Effect.void))
  })

/** Sends a signal and waits for the exit. */
const endWith = (child: ChildProcess, signal: NodeJS.Signals): Effect.Effect<void> =>
  Effect.suspend(() => {
    child.kill(signal)
    return exited(child)
  })

const readiness = (url: string) =>
  Effect.tryPromise({
    try: async () => {
      const response = await fetch(`${url}/readyz`)
      const body: unknown = await response.json()
      const node = typeof body === "object" && body !== null && "node" in body ? body.node : ""
      return { ready: response.status === 200, node: String(node) }
    },
    catch: () => new RunnerError({ message: "not listening yet" })
  }).pipe(
    Effect.filterOrFail(
      ({ ready }) => ready,
      () => new RunnerError({ message: "not ready yet" })
    )
  )

/** Starts a runner on this database and waits until it is ready. */
export const startRunner = (options: {
  readonly databaseUrl: string
  readonly dataDir: string
  readonly env?: Readonly<Record<string, string>>
  /** The file that starts the service; that of another release in tests of upgrades. */
  readonly main?: string | undefined
}): Effect.Effect<Runner, RunnerError, Scope.Scope> =>
  Effect.gen(function* () {
    const port = yield* freePort
    const runnerPort = yield* freePort
    const url = `http://127.0.0.1:${port}`
    let output = ""
    const child = yield* Effect.acquireRelease(
      Effect.sync(() => {
        const process = spawn("node", [options.main ?? main], {
          stdio: ["ignore", "pipe", "pipe"],
          env: {
            PATH: `${fileURLToPath(new URL("../../node_modules/.bin", import.meta.url))}:${systemPath}`,
            HOST: "127.0.0.1",
            PORT: String(port),
            DATABASE_URL: options.databaseUrl,
            SVC_DATA_DIR: options.dataDir,
            SVC_BASE_URL: "http://localhost:8080",
            SVC_RUNNER_HOST: "127.0.0.1",
            SVC_RUNNER_PORT: String(runnerPort),
            SVC_THROTTLES: "off",
            NODE_COMPILE_CACHE: compileCache,
            SVC_TURN_PORT: "0",
            ...options.env
          }
        })
        const append = (chunk: Buffer): void => {
          output = (output + chunk.toString()).slice(-outputMax)
        }
        process.on("error", (error) => append(Buffer.from(error.message)))
        process.stdout.on("data", append)
        process.stderr.on("data", append)
        return process
      }),
      (process) => endWith(process, "SIGKILL")
    )
    const { node } = yield* readiness(url).pipe(
      Effect.retry({ ...startRetries, while: () => child.exitCode === null }),
      Effect.mapError(
        (error) => new RunnerError({ message: `The runner is ${error.message}:\n${output}` })
      )
    )
    return {
      url,
      socketUrl: url.replace("http", "ws"),
      node,
      pid: child.pid ?? 0,
      stop: endWith(child, "SIGTERM"),
      kill: endWith(child, "SIGKILL"),
      signal: (signal) => Effect.sync(() => void child.kill(signal)),
      output: () => output
    }
  })

const DevKeys = Schema.fromJsonString(
  Schema.Struct({
    development: Schema.Struct({ publishableKey: Schema.String, secretKey: Schema.String })
  })
)

const keysOf = (dataDir: string) =>
  Effect.flatMap(
    Effect.tryPromise(() => readFile(join(dataDir, "dev-keys.json"), "utf8")),
    Schema.decodeUnknownEffect(DevKeys)
  )

/** Starts several runners on one empty database, with the keys of its seeded environment. */
export const startCluster = (options: {
  readonly databaseUrl: string
  readonly size: number
  readonly env?: Readonly<Record<string, string>>
}): Effect.Effect<
  {
    readonly runners: ReadonlyArray<Runner>
    readonly target: TestTarget
    /** Starts another runner, which stops with its own scope. */
    readonly join: Effect.Effect<Runner, RunnerError, Scope.Scope>
    /** Starts a runner of another release, whose file starts the service. */
    readonly joinAs: (main: string) => Effect.Effect<Runner, RunnerError, Scope.Scope>
  },
  RunnerError,
  Scope.Scope
> =>
  Effect.gen(function* () {
    const dataDir = yield* Effect.acquireRelease(
      Effect.promise(() => mkdtemp(join(tmpdir(), "runners-"))),
      (dir) => Effect.promise(() => rm(dir, { recursive: true, force: true }))
    )
    const { databaseUrl, env = {}, size } = options
    const first = yield* startRunner({ databaseUrl, dataDir, env })
    const others = yield* Effect.all(
      Array.from({ length: size - 1 }, () => startRunner({ databaseUrl, dataDir, env })),
      { concurrency: "unbounded" }
    )
    const keys = yield* Effect.mapError(
      keysOf(dataDir),
      () => new RunnerError({ message: `No keys were seeded:\n${first.output()}` })
    )
    return {
      runners: [first, ...others],
      target: { url: first.url, ...keys.development },
      join: startRunner({ databaseUrl, dataDir, env }),
      joinAs: (main) => startRunner({ databaseUrl, dataDir, env, main })
    }
  })
