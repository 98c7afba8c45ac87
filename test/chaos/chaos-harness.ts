/**
 * The cluster under test: runner processes on one Postgres behind a balancer. A fault proxy carries each
 * connection between two runners and from a runner to Postgres.
 */
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { NodeServices } from "@effect/platform-node"
import { PgConnection } from "@effect/sql-pg"
import { Effect, Exit, FileSystem, Redacted, Schema, Scope } from "effect"
import { embeddedPostgres } from "#server/platform/postgres/embedded"
import { configure, type TestTarget } from "#testing/players"
import { freePort, type Runner, type RunnerError, startRunner } from "#testing/runners"
import { Balancer } from "./balancer.ts"
import { FaultProxy } from "./fault-proxy.ts"
import { dataFolder } from "../support/data-folder.ts"

const redirect = fileURLToPath(new URL("./redirect.ts", import.meta.url))

/** A Postgres that can be stopped, killed and restarted. */
export class Postgres {
  url: URL
  readonly #dataDir: string
  #scope: Scope.Closeable

  private constructor(dataDir: string, scope: Scope.Closeable, url: URL) {
    this.#dataDir = dataDir
    this.#scope = scope
    this.url = url
  }

  static readonly start = Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const dataDir = yield* fs.makeTempDirectoryScoped({ prefix: "chaos-" })
    yield* fs.chmod(dataDir, 0o755)
    const { scope, url } = yield* Postgres.#run(dataDir)
    const postgres = new Postgres(dataDir, scope, url)
    yield* Effect.addFinalizer((exit) => Effect.suspend(() => Scope.close(postgres.#scope, exit)))
    return postgres
  }).pipe(Effect.provide(NodeServices.layer))

  static #run(dataDir: string) {
    return Effect.gen(function* () {
      const scope = yield* Scope.make()
      const database = yield* Scope.provide(embeddedPostgres({ dataDir }), scope)
      const url = new URL(Redacted.value(database.url))
      // By this name, a stop would count the runners as other services.
      url.searchParams.delete("application_name")
      return { scope, url }
    }).pipe(Effect.provide(NodeServices.layer))
  }

  /** `pg_ctl stop -m fast`, as an upgrade of the operating system would. */
  readonly stop = Effect.suspend(() => Scope.close(this.#scope, Exit.void))

  /** kill -9 of the server: recovery follows, and unlogged tables are empty. */
  readonly crash = Effect.gen({ self: this }, function* () {
    const file = join(this.#dataDir, "postgres", "data", "postmaster.pid")
    const [pid] = (yield* Effect.promise(() => readFile(file, "utf8"))).split("\n")
    yield* Effect.sync(() => process.kill(Number(pid), "SIGKILL"))
    yield* this.stop
  })

  readonly startAgain = Effect.gen({ self: this }, function* () {
    const { scope, url } = yield* Postgres.#run(this.#dataDir)
    this.#scope = scope
    this.url = url
  })
}

/** A slot for a runner: its port, and the proxies of its outgoing connections. */
export interface RunnerSlot {
  readonly index: number
  readonly runnerPort: number
  /** To Postgres. */
  readonly database: FaultProxy
  /** To the other slots, by index. */
  readonly wires: ReadonlyMap<number, FaultProxy>
  runner: Runner
  /** The file that starts its service; undefined for this release. */
  readonly main: string | undefined
}

const open = (target: number) =>
  Effect.acquireRelease(
    Effect.promise(() => FaultProxy.open(target)),
    (proxy) => Effect.sync(() => proxy.close())
  )

const Keys = Schema.fromJsonString(
  Schema.Struct({
    development: Schema.Struct({ publishableKey: Schema.String, secretKey: Schema.String })
  })
)

const portOf = (url: string): number => Number(new URL(url).port)

export class ChaosHarness {
  readonly postgres: Postgres
  readonly balancer: Balancer
  readonly places: Array<RunnerSlot> = []
  /** The output of every runner, including those that exited. */
  readonly outputs: Array<() => string> = []
  /** The service as apps reach it. */
  target: TestTarget = { url: "", publishableKey: "", secretKey: "" }
  readonly #dataDir: string
  readonly #nodeOptions: string

  private constructor(
    postgres: Postgres,
    balancer: Balancer,
    dataDir: string,
    nodeOptions: ReadonlyArray<string>
  ) {
    this.postgres = postgres
    this.balancer = balancer
    this.#dataDir = dataDir
    this.#nodeOptions = ["--import", redirect, ...nodeOptions].join(" ")
  }

  /** Starts `size` runners and applies a config document. */
  static readonly start = Effect.fnUntraced(function* (
    size: number,
    config: object,
    nodeOptions: ReadonlyArray<string> = [],
    main?: string
  ) {
    const dataDir = yield* dataFolder("chaos-runners-")
    const balancer = yield* Effect.acquireRelease(
      Effect.promise(() => Balancer.open()),
      (opened) => Effect.sync(() => opened.close())
    )
    const harness = new ChaosHarness(yield* Postgres.start, balancer, dataDir, nodeOptions)
    const ports = yield* Effect.all(Array.from({ length: size }, () => freePort))
    // The first runner migrates the database; the others start together.
    const [first = 0, ...others] = ports.keys()
    harness.places.push(yield* harness.#furnish(first, ports, main))
    const furnished = yield* Effect.forEach(
      others,
      (index) => harness.#furnish(index, ports, main),
      {
        concurrency: "unbounded"
      }
    )
    harness.places.push(...furnished)
    const text = yield* Effect.promise(() => readFile(join(dataDir, "dev-keys.json"), "utf8"))
    const { development } = Schema.decodeSync(Keys)(text)
    harness.target = { url: balancer.url, ...development }
    yield* configure(harness.target, config)
    return harness
  })

  #furnish(index: number, ports: ReadonlyArray<number>, main: string | undefined) {
    return Effect.gen({ self: this }, function* () {
      const wires = new Map<number, FaultProxy>()
      for (const [other, port] of ports.entries()) {
        if (other !== index) wires.set(other, yield* open(port))
      }
      const database = yield* open(portOf(this.postgres.url.href))
      const place = { index, runnerPort: ports[index] ?? 0, database, wires, main }
      const furnished: RunnerSlot = { ...place, runner: yield* this.#run(place) }
      return furnished
    })
  }

  /** Starts a runner in a slot, and adds it to the balancer once it is ready. */
  #run({ database, main, runnerPort, wires }: Omit<RunnerSlot, "runner">) {
    return Effect.gen({ self: this }, function* () {
      const url = new URL(this.postgres.url)
      url.port = String(database.port)
      const routes = Array.from(wires.values(), ({ port, target }) => [target, port] as const)
      const runner = yield* startRunner({
        databaseUrl: url.href,
        dataDir: this.#dataDir,
        main,
        env: {
          SVC_RUNNER_PORT: String(runnerPort),
          NODE_OPTIONS: this.#nodeOptions,
          CHAOS_ROUTES: JSON.stringify(Object.fromEntries(routes))
        }
      })
      this.balancer.add(portOf(runner.url))
      this.outputs.push(() => `runner at ${runnerPort}, process ${runner.pid}\n${runner.output()}`)
      return runner
    })
  }

  /** The proxies that lead to a slot. */
  #wiresTo(place: RunnerSlot): ReadonlyArray<FaultProxy> {
    return this.places.flatMap(({ wires }) => wires.get(place.index) ?? [])
  }

  /** kill -9: from then on its port refuses connections. */
  kill(place: RunnerSlot): Effect.Effect<void> {
    return Effect.suspend(() => {
      for (const wire of this.#wiresTo(place)) wire.refuse()
      return place.runner.kill
    })
  }

  /** Starts a new process in the slot of one that exited. */
  replace(place: RunnerSlot): Effect.Effect<void, RunnerError, Scope.Scope> {
    return Effect.gen({ self: this }, function* () {
      this.balancer.remove(portOf(place.runner.url))
      for (const wire of this.#wiresTo(place)) yield* Effect.promise(() => wire.accept())
      place.runner = yield* this.#run(place)
    })
  }

  /** Adds a runner in a new slot, with direct connections to the others. */
  join(main?: string) {
    return Effect.gen({ self: this }, function* () {
      const runnerPort = yield* freePort
      const database = yield* open(portOf(this.postgres.url.href))
      const place = { index: this.places.length, runnerPort, database, wires: new Map(), main }
      const joined: RunnerSlot = { ...place, runner: yield* this.#run(place) }
      this.places.push(joined)
      return joined
    })
  }

  /** SIGTERM, and waits for the exit. The balancer avoids it once it reports not ready. */
  leave(place: RunnerSlot): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      yield* place.runner.stop
      this.balancer.remove(portOf(place.runner.url))
      for (const wire of this.#wiresTo(place)) wire.refuse()
    })
  }

  /** The proxies between two slots, in both directions. */
  between(one: RunnerSlot, other: RunnerSlot): ReadonlyArray<FaultProxy> {
    return [one.wires.get(other.index) ?? [], other.wires.get(one.index) ?? []].flat()
  }

  /** Restarts Postgres, perhaps on another port. */
  readonly postgresAgain = Effect.gen({ self: this }, function* () {
    yield* this.postgres.startAgain
    for (const { database } of this.places) database.target = portOf(this.postgres.url.href)
  })

  /** Runs a statement on a direct connection and returns its rows. */
  query(statement: string) {
    return Effect.gen({ self: this }, function* () {
      const session = yield* PgConnection.make({ url: Redacted.make(this.postgres.url.href) })
      const { rows } = yield* session.query(statement)
      return rows
    }).pipe(Effect.scoped)
  }
}
