/**
 * Benchmark of a stall of Postgres: all runners lose their shard locks together. Postgres is frozen for
 * some seconds under load, and each room is timed until it acknowledges a change again.
 *
 *   node test/bench/stall.ts --runners 8 --rooms 2000 --stall 3000 --trials 2
 *
 * Needs `/proc`, to find the processes of Postgres.
 */
import { readdir, readFile } from "node:fs/promises"
import { loadavg } from "node:os"
import { setTimeout as delay } from "node:timers/promises"
import { parseArgs } from "node:util"
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { PgConnection } from "@effect/sql-pg"
import { Effect, Redacted, Schedule } from "effect"
import { SecureRandom } from "effect/crypto"
import { cloneDatabase, testServer } from "#testing/database"
import { guest, type TestTarget } from "#testing/players"
import { type Runner, startCluster } from "#testing/runners"
import { member, PlayerSocket } from "./player-socket.ts"

const { values } = parseArgs({
  options: {
    runners: { type: "string", default: "8" },
    rooms: { type: "string", default: "2000" },
    stall: { type: "string", default: "3000" },
    trials: { type: "string", default: "2" },
    every: { type: "string", default: "1000" },
    patience: { type: "string", default: "60000" },
    "locks-apart": { type: "boolean", default: false }
  }
})
const runnerCount = Number(values.runners)
const roomCount = Number(values.rooms)
const stallMillis = Number(values.stall)
const trialCount = Number(values.trials)
const everyMillis = Number(values.every)
const patienceMillis = Number(values.patience)

const settleMillis = 15_000
/** Locks that are lost again after the return are lost within this time. */
const watchMillis = 15_000
const retryMillis = 100
const replyMillis = 5000

/** Prints in each runner how late its event loop is. */
const loopProbe = new URL("./loop-probe.ts", import.meta.url).href

/** What a runner logs when it loses its shard locks, when it has some again, and when its loop is late. */
const logged = /Shard lock storage is (unhealthy)|(Acquired) \d+ shards|loop (\d+) ms late/g

/**
 * The room that a request gives a seat in; repeats the request while the machine is too busy for it. A
 * request whose reply was lost may have given the seat.
 */
const seatIn = async (
  socket: PlayerSocket,
  frame: Readonly<Record<string, unknown>>
): Promise<unknown> => {
  const deadline = performance.now() + patienceMillis
  for (;;) {
    const reply = await socket.request(frame)
    if (reply["ok"] === true) return member(reply, "data", "roomId")
    if (member(reply, "error", "code") === "already_in_room") {
      return member(reply, "error", "details", "roomId")
    }
    if (performance.now() > deadline) throw new Error(`no room: ${JSON.stringify(reply)}`)
    await delay(retryMillis)
  }
}

/** A room with two players on different runners, one of whom changes the state again and again. */
class TimedRoom {
  readonly #writer: PlayerSocket
  readonly #other: PlayerSocket
  #change = 0
  #attempt = 0
  #timer: NodeJS.Timeout | undefined
  /** When the last acknowledged change was requested, and when it was acknowledged. */
  granted = { askedAt: 0, at: 0 }

  private constructor(writer: PlayerSocket, other: PlayerSocket) {
    this.#writer = writer
    this.#other = other
    this.#timer = setTimeout(() => this.#act(), Math.random() * everyMillis)
  }

  static async open(writer: PlayerSocket, other: PlayerSocket): Promise<TimedRoom> {
    const roomId = await seatIn(writer, { t: "create", mode: "default" })
    await seatIn(other, { t: "join", roomId })
    return new TimedRoom(writer, other)
  }

  get closed(): number | undefined {
    return this.#writer.closed ?? this.#other.closed
  }

  #act(): void {
    const change = (this.#change += 1)
    const attempt = (this.#attempt += 1)
    const askedAt = performance.now()
    const next = (millis: number): void => {
      if (attempt !== this.#attempt) return
      clearTimeout(this.#timer)
      this.#timer = setTimeout(() => this.#act(), millis)
    }
    this.#writer.ask({ t: "setState", patch: { change } }, (reply) => {
      const isGranted = reply["ok"] === true
      if (isGranted) this.granted = { askedAt, at: performance.now() }
      next(isGranted ? Math.max(1, everyMillis - (performance.now() - askedAt)) : retryMillis)
    })
    this.#timer = setTimeout(() => this.#act(), replyMillis)
  }

  end(): void {
    this.#attempt += 1
    clearTimeout(this.#timer)
    this.#writer.close()
    this.#other.close()
  }
}

/** Repeated, since a runner that is too busy while the rooms open may close its sockets. */
const openSocket = (target: TestTarget, runner: Runner) =>
  Effect.flatMap(guest({ ...target, url: runner.url }), ({ accessToken, id }) =>
    Effect.tryPromise(() =>
      PlayerSocket.open(
        { id, socketUrl: runner.socketUrl, key: target.publishableKey, token: accessToken },
        () => undefined
      )
    )
  ).pipe(Effect.retry({ times: 100, schedule: Schedule.spaced(retryMillis) }))

const openRooms = (target: TestTarget, runners: ReadonlyArray<Runner>) =>
  Effect.forEach(
    Array.from({ length: roomCount }, (_, number) => [
      runners[number % runners.length],
      runners[(number + 1) % runners.length]
    ]),
    ([first, second]) =>
      Effect.gen(function* () {
        if (first === undefined || second === undefined) return yield* Effect.die("no runners")
        const writer = yield* openSocket(target, first)
        const other = yield* openSocket(target, second)
        return yield* Effect.promise(() => TimedRoom.open(writer, other))
      }),
    { concurrency: 16 }
  )

/** The parent of a process, field 4 of its stat; counted from the last `)`, since a name may hold spaces. */
const parentOf = async (pid: string): Promise<number> => {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => ") ? 0")
  return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1])
}

/** The processes of the server, its first one last. */
const serverProcesses = (url: Redacted.Redacted) =>
  Effect.gen(function* () {
    const session = yield* PgConnection.make({ url })
    const { rows } = yield* session.query("select pg_backend_pid() as pid")
    const postmaster = yield* Effect.promise(() => parentOf(String(member(rows, "0", "pid"))))
    if (postmaster <= 1) return yield* Effect.die("the server's first process is not known")
    return yield* Effect.promise(async () => {
      const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name))
      const parents = await Promise.all(pids.map(parentOf))
      const children = pids.map(Number).filter((_, i) => parents[i] === postmaster)
      return [...children, postmaster]
    })
  }).pipe(Effect.scoped)

const signal = (pid: number, name: NodeJS.Signals): void => {
  try {
    process.kill(pid, name)
  } catch {
    // It has ended meanwhile.
  }
}

/** Freezes the server. */
const stall = (url: Redacted.Redacted) =>
  Effect.acquireUseRelease(
    Effect.tap(serverProcesses(url), (pids) =>
      Effect.sync(() => pids.toReversed().forEach((pid) => signal(pid, "SIGSTOP")))
    ),
    () => Effect.promise(() => delay(stallMillis)),
    (pids) => Effect.sync(() => pids.forEach((pid) => signal(pid, "SIGCONT")))
  )

/** What a runner has logged of its locks and its event loop, in order. */
const logOf = (runner: Runner) =>
  Array.from(runner.output().matchAll(logged), ([, lost, acquired, late]) => ({
    isLoss: lost !== undefined,
    isReturn: acquired !== undefined,
    lateMillis: Number(late ?? 0)
  }))

/** A loss before a runner has its locks back is no second one: the first goes on. */
const summaryOf = (log: ReturnType<typeof logOf>) => {
  const ofLocks = log.filter(({ isLoss, isReturn }) => isLoss || isReturn)
  return {
    losses: ofLocks.filter(({ isLoss }) => isLoss).length,
    again: ofLocks.filter(({ isLoss }, i) => isLoss && ofLocks[i - 1]?.isReturn === true).length,
    lateMillis: Math.max(0, ...log.map(({ lateMillis }) => lateMillis))
  }
}

const quantile = (sorted: ReadonlyArray<number>, share: number): number =>
  sorted[Math.ceil((sorted.length - 1) * share)] ?? Number.NaN

const trial = Effect.fnUntraced(function* (
  url: Redacted.Redacted,
  runners: ReadonlyArray<Runner>,
  rooms: ReadonlyArray<TimedRoom>
) {
  const before = runners.map((runner) => logOf(runner).length)
  const sinceStall = () => runners.map((runner, i) => summaryOf(logOf(runner).slice(before[i])))
  const stalledAt = performance.now()
  yield* stall(url)
  const goesOnAt = performance.now()
  const back = new Map<TimedRoom, number>()
  const lostAgainAfter: Array<number> = []
  yield* Effect.promise(async () => {
    while (performance.now() - goesOnAt < patienceMillis) {
      for (const room of rooms) {
        if (!back.has(room) && room.granted.at > goesOnAt) back.set(room, room.granted.at)
      }
      const lost = sinceStall().reduce((sum, { again }) => sum + again, 0)
      while (lostAgainAfter.length < lost) lostAgainAfter.push(performance.now() - goesOnAt)
      if (back.size === rooms.length && performance.now() - goesOnAt > watchMillis) return
      await delay(20)
    }
  })
  const times = Array.from(back.values(), (at) => at - goesOnAt).toSorted((a, b) => a - b)
  const seconds = (millis: number): string => `${(millis / 1000).toFixed(2)} s`
  const found = sinceStall()
  const late = rooms.filter(({ granted }) => performance.now() - granted.at > 2 * everyMillis + 500)
  console.log(
    `frozen for ${seconds(goesOnAt - stalledAt)}; ${times.length} of ${rooms.length} rooms back: ` +
      `half after ${seconds(quantile(times, 0.5))}, p95 ${seconds(quantile(times, 0.95))}, ` +
      `all ${seconds(quantile(times, 1))}; ` +
      `refreshes given up ${found.map(({ losses }) => losses).join(" ")}; ` +
      `locks lost again ${found.map(({ again }) => again).join(" ")} times` +
      `${lostAgainAfter.map((at) => `, after ${seconds(at)}`).join("")}; ` +
      `event loops late by up to ${found.map(({ lateMillis }) => lateMillis).join(" ")} ms; ` +
      `load ${loadavg()[0]?.toFixed(1)}; ` +
      `${late.length} rooms silent at the end; ` +
      `${rooms.filter(({ closed }) => closed !== undefined).length} sockets closed`
  )
})

const run = Effect.gen(function* () {
  const database = yield* Effect.flatMap(testServer, cloneDatabase)
  const { runners, target } = yield* startCluster({
    databaseUrl: Redacted.value(database),
    size: runnerCount,
    env: {
      SVC_LOG_LEVEL: "info",
      NODE_OPTIONS: `--import=${loopProbe}`,
      ...(values["locks-apart"] ? { SVC_LOCK_DATABASE_URL: Redacted.value(database) } : {})
    }
  })
  const rooms = yield* openRooms(target, runners)
  console.log(`${rooms.length} rooms are open on ${runners.length} runners`)
  yield* Effect.addFinalizer(() => Effect.sync(() => rooms.forEach((room) => room.end())))
  for (let number = 0; number < trialCount; number++) {
    yield* Effect.promise(() => delay(settleMillis))
    yield* trial(database, runners, rooms)
  }
})

run.pipe(
  Effect.scoped,
  Effect.provide(NodeServices.layer),
  Effect.provide(SecureRandom.layerWebCrypto),
  NodeRuntime.runMain
)
