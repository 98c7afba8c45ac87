/**
 * Benchmark of recovery: how long a room is silent when its runner fails, and what it loses (see
 * `docs/operations/guarantees.md`). Three runner processes share one Postgres. Players are connected to two
 * of them; the third, with its share of the rooms, is killed, stopped or frozen in each trial.
 *
 *   node test/bench/recovery.ts --fault kill --fault stop --trials 20 --rooms 60 --minutes 9
 */
import { mkdir, writeFile } from "node:fs/promises"
import { loadavg } from "node:os"
import { setTimeout as delay } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { NodeServices } from "@effect/platform-node"
import { PgConnection } from "@effect/sql-pg"
import { Effect, Redacted } from "effect"
import { SecureRandom } from "effect/crypto"
import { cloneDatabase, testServer } from "#testing/database"
import { guest, type TestTarget } from "#testing/players"
import { type Runner, startCluster } from "#testing/runners"
import { formatTable } from "./many/report.ts"
import { ObservedRoom, type Outcome } from "./observed-room.ts"
import type { Seat } from "./player-socket.ts"

/** What is done to the runner, and for how long it stays frozen. */
const faults = {
  kill: { title: "kill -9", frozenMillis: 0, goalMillis: 2000 },
  stop: { title: "SIGTERM", frozenMillis: 0, goalMillis: 500 },
  freeze8: { title: "SIGSTOP for 8 s", frozenMillis: 8000, goalMillis: undefined },
  freeze40: { title: "SIGSTOP for 40 s", frozenMillis: 40_000, goalMillis: undefined }
} as const
type Fault = keyof typeof faults

interface Trial {
  readonly rooms: number
  readonly silences: ReadonlyArray<number>
  readonly lostMillis: number
  readonly faults: ReadonlyArray<string>
  /** Processes that ran or waited for a core, over the last minute; all but one or two are not ours. */
  readonly load: number
}

/** Only a run with so many trials of each fault replaces the committed file. */
const completeTrials = 20
const patienceMillis = 60_000
const settleMillis = 2500

const seatOn = (target: TestTarget, runner: Runner) =>
  Effect.map(guest({ ...target, url: runner.url }), ({ accessToken, id }): Seat => ({
    id,
    socketUrl: runner.socketUrl,
    key: target.publishableKey,
    token: accessToken
  }))

const openRooms = (target: TestTarget, survivors: readonly [Runner, Runner], count: number) =>
  Effect.forEach(
    Array.from({ length: count }),
    () =>
      Effect.gen(function* () {
        const writer = yield* seatOn(target, survivors[0])
        const talker = yield* seatOn(target, survivors[1])
        return yield* Effect.promise(() => ObservedRoom.open(writer, talker))
      }),
    { concurrency: 4 }
  )

/** The rooms that live on a runner, as their rows say. */
const roomsOn = (url: Redacted.Redacted, node: string) =>
  Effect.gen(function* () {
    const session = yield* PgConnection.make({ url })
    const { rows } = yield* session.query(`select id from rooms where node = '${node}'`)
    return new Set(rows.map((row: Readonly<Record<string, unknown>>) => String(row["id"])))
  }).pipe(Effect.scoped)

const until = async (done: () => boolean): Promise<void> => {
  const deadline = performance.now() + patienceMillis
  while (!done() && performance.now() < deadline) await delay(5)
}

const addWitnesses = (target: TestTarget, victim: Runner, rooms: ReadonlyArray<ObservedRoom>) =>
  Effect.forEach(
    rooms,
    (room) =>
      Effect.flatMap(seatOn(target, victim), (seat) => Effect.promise(() => room.addWitness(seat))),
    { concurrency: 4, discard: true }
  )

/** Lets a runner fail, and waits until each of its rooms has answered again and all is quiet. */
const fail = Effect.fnUntraced(function* (
  fault: Fault,
  victim: Runner,
  rooms: ReadonlyArray<ObservedRoom>
) {
  for (const room of rooms) room.begin()
  const { frozenMillis } = faults[fault]
  const faultAt = performance.now()
  if (fault === "kill") yield* victim.kill
  else yield* victim.signal(fault === "stop" ? "SIGTERM" : "SIGSTOP")
  yield* Effect.promise(async () => {
    await until(() => rooms.every((room) => room.grantedSince(faultAt + 100)))
    const rest = faultAt + Math.max(frozenMillis, settleMillis) - performance.now()
    if (rest > 0) await delay(rest)
  })
  const backAt = performance.now()
  if (frozenMillis > 0) {
    yield* victim.signal("SIGCONT")
    yield* Effect.promise(() => delay(settleMillis))
    for (const room of rooms) room.stopWitness()
    yield* Effect.promise(() => delay(settleMillis))
  }
  return { faultAt, backAt }
})

const trialOf = (outcomes: ReadonlyArray<Outcome>): Trial => ({
  rooms: outcomes.length,
  silences: outcomes.map(({ silenceMillis }) => silenceMillis),
  lostMillis: Math.max(0, ...outcomes.map(({ lostMillis }) => lostMillis)),
  faults: outcomes.flatMap((outcome) => outcome.faults),
  load: loadavg()[0] ?? Number.NaN
})

const quantile = (values: ReadonlyArray<number>, share: number): number =>
  values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) * share)] ?? Number.NaN

const summaryOf = (fault: Fault, trials: ReadonlyArray<Trial>) => {
  const worst = trials.map(({ silences }) => Math.max(...silences))
  return {
    fault: faults[fault].title,
    goalMillis: faults[fault].goalMillis ?? null,
    trials: trials.length,
    rooms: trials.reduce((sum, trial) => sum + trial.rooms, 0),
    /** Of all rooms of a trial until each answered again. */
    medianMillis: Math.round(quantile(worst, 0.5)),
    p90Millis: Math.round(quantile(worst, 0.9)),
    worstMillis: Math.round(quantile(worst, 1)),
    medianRoomMillis: Math.round(
      quantile(
        trials.flatMap(({ silences }) => silences),
        0.5
      )
    ),
    lostMillis: Math.round(Math.max(...trials.map(({ lostMillis }) => lostMillis))),
    load: quantile(
      trials.map(({ load }) => load),
      0.5
    ),
    faults: trials.flatMap((trial) => trial.faults)
  }
}
type Summary = ReturnType<typeof summaryOf>

const header = [
  "failure",
  "trials",
  "rooms",
  "goal ms",
  "all back: median ms",
  "p90 ms",
  "worst ms",
  "one room: median ms",
  "forgotten ms",
  "load",
  "faults"
]

const rowOf = (summary: Summary): ReadonlyArray<string> => [
  summary.fault,
  String(summary.trials),
  String(summary.rooms),
  String(summary.goalMillis ?? ""),
  String(summary.medianMillis),
  String(summary.p90Millis),
  String(summary.worstMillis),
  String(summary.medianRoomMillis),
  String(summary.lostMillis),
  summary.load.toFixed(1),
  String(summary.faults.length)
]

/** The faults take turns, so that all see the same machine; no trial begins after the deadline. */
const run = Effect.fnUntraced(function* (
  chosen: ReadonlyArray<Fault>,
  trialCount: number,
  roomCount: number,
  deadline: number
) {
  const database = yield* Effect.flatMap(testServer, cloneDatabase)
  const databaseUrl = Redacted.value(database)
  const { join, runners, target } = yield* startCluster({ databaseUrl, size: 2 })
  const [first, second] = runners
  if (first === undefined || second === undefined) return yield* Effect.die("no cluster")
  const rooms = yield* openRooms(target, [first, second], roomCount)
  yield* Effect.addFinalizer(() => Effect.sync(() => rooms.forEach((room) => room.end())))
  const trials = new Map(chosen.map((fault) => [fault, new Array<Trial>()]))
  const turns = Array.from({ length: trialCount }, () => chosen).flat()
  for (const fault of turns) {
    if (performance.now() > deadline) break
    const done = yield* Effect.scoped(
      Effect.gen(function* () {
        const victim = yield* join
        yield* Effect.promise(() => delay(settleMillis))
        const hit = yield* roomsOn(database, victim.node)
        const watched = rooms.filter((room) => hit.has(room.roomId))
        if (faults[fault].frozenMillis > 0) yield* addWitnesses(target, victim, watched)
        const { backAt, faultAt } = yield* fail(fault, victim, watched)
        const outcomes = watched.map((room) => room.outcome(faultAt, backAt))
        for (const room of watched) room.removeWitness()
        return trialOf(outcomes)
      })
    )
    yield* Effect.promise(() => delay(settleMillis))
    if (done.rooms > 0) trials.get(fault)?.push(done)
    const longest = Math.max(0, ...done.silences).toFixed(0)
    console.log(`${fault}: ${done.rooms} rooms, back after ${longest} ms`)
  }
  return Array.from(trials, ([fault, done]) => summaryOf(fault, done))
})

const { values } = parseArgs({
  options: {
    fault: { type: "string", multiple: true },
    trials: { type: "string", default: String(completeTrials) },
    rooms: { type: "string", default: "60" },
    minutes: { type: "string", default: "9" }
  }
})
const isFault = (name: string): name is Fault => Object.hasOwn(faults, name)
const wanted = (values.fault ?? ["kill", "stop"]).filter(isFault)
const summaries = await Effect.runPromise(
  run(
    wanted,
    Number(values.trials),
    Number(values.rooms),
    performance.now() + Number(values.minutes) * 60_000
  ).pipe(
    Effect.scoped,
    Effect.provide(NodeServices.layer),
    Effect.provide(SecureRandom.layerWebCrypto)
  )
)
console.log(
  formatTable("Time until all rooms of the runner were back", header, summaries.map(rowOf))
)
for (const line of new Set(summaries.flatMap((summary) => summary.faults))) {
  console.log(`FAULT: ${line}`)
}
const isComplete = summaries.every(({ trials }) => trials >= completeTrials)
const folder = fileURLToPath(new URL(isComplete ? "./results/" : "./results/tmp/", import.meta.url))
await mkdir(folder, { recursive: true })
await writeFile(`${folder}recovery.json`, `${JSON.stringify(summaries, undefined, 2)}\n`)
if (summaries.some((summary) => summary.faults.length > 0)) process.exitCode = 1
