/**
 * Benchmark of scaling: players keep playing while one runner becomes three and then two. Measures the
 * rooms that move, how long a player waits, lost seats, and how even the load is afterwards.
 *
 *   node test/bench/scaling.ts --rooms 60 --apart
 */
import { mkdir, writeFile } from "node:fs/promises"
import { setTimeout as delay } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { Effect } from "effect"
import { SecureRandom } from "effect/crypto"
import type { Client } from "#client/client"
import type { TestTarget } from "#testing/players"
import { appClient, drive, retryPassing } from "../chaos/apps.ts"
import { ChaosHarness } from "../chaos/chaos-harness.ts"
import { Journal } from "../chaos/journal.ts"
import { config } from "../chaos/load.ts"
import { RoomApp } from "../chaos/play-apps.ts"
import { runScript } from "../chaos/script.ts"
import { readMetric } from "../support/metrics.ts"

const seats = 4
const timerMillis = 20
const settleMillis = 6000
const loadMillis = 5000

/** Players in rooms: each changes the state of its room ten times a second. */
class Players {
  readonly journal = new Journal()
  readonly apps: Array<RoomApp> = []
  readonly #clients: Array<Client> = []
  readonly #reconnected = new Set<RoomApp>()
  readonly #stopped = new AbortController()

  /** Adds rooms, whose players connect through the balancer. */
  async open(target: TestTarget, count: number): Promise<void> {
    for (let room = 0; room < count; room++) {
      const first = await this.#enter(target, ({ rooms }) => rooms.create({ mode: "party" }))
      for (let seat = 1; seat < seats; seat++) {
        await this.#enter(target, ({ rooms }) => rooms.join({ roomId: first }))
      }
    }
  }

  async #enter(
    target: TestTarget,
    find: (client: Client) => ReturnType<Client["rooms"]["join"]>
  ): Promise<string> {
    const client = await appClient(target)
    this.#clients.push(client)
    const room = await retryPassing(() => find(client))
    const app = new RoomApp(`player-${this.apps.length + 1}`, room, this.journal, 0)
    this.apps.push(app)
    this.journal.expect(app.kind, app.name)
    client.on("status", () => this.#reconnected.add(app))
    void drive(app, this.journal, this.#stopped.signal, 1)
    return room.id
  }

  /** The longest wait of each player since a time, and whether its connection moved. */
  waits(since: number) {
    const waits = this.journal.waits(since, since)
    const found = this.apps.map((app, i) => ({
      roomId: app.room.id,
      millis: waits[i]?.silence ?? 0,
      reconnected: this.#reconnected.has(app)
    }))
    this.#reconnected.clear()
    return found
  }

  /** Players who are no longer members of their rooms in the view of another member. */
  lostSeats(): number {
    return this.apps.filter(
      ({ room }) => room.closed !== undefined || room.players.length !== seats
    ).length
  }

  close(): void {
    this.#stopped.abort()
    for (const client of this.#clients) client.close()
  }
}

/**
 * The epoch of each room. It grows in the row when the room wakes on another runner; the row names that
 * runner only with the next snapshot.
 */
const epochsOf = (harness: ChaosHarness) =>
  Effect.map(
    harness.query("select id, epoch from rooms"),
    (rows) =>
      new Map(
        rows.map((row: Readonly<Record<string, unknown>>) => [
          String(row["id"]),
          String(row["epoch"])
        ])
      )
  )

/** How late a timer of this process fires at most, in milliseconds: what the machine adds to waits. */
const withStarvation = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    let worst = 0
    let before = performance.now()
    const timer = setInterval(() => {
      const now = performance.now()
      worst = Math.max(worst, now - before - timerMillis)
      before = now
    }, timerMillis)
    return effect.pipe(
      Effect.map((value) => [value, Math.round(worst)] as const),
      Effect.ensuring(Effect.sync(() => clearInterval(timer)))
    )
  })

/** Shards, rooms, sockets and event-loop use of each runner. */
const loadOf = Effect.fnUntraced(function* (harness: ChaosHarness) {
  const read = (name: string) =>
    Effect.forEach(harness.places, ({ runner }) => readMetric(runner.url, name))
  const active = "svc_event_loop_active_seconds_total"
  const before = yield* read(active)
  yield* Effect.promise(() => delay(loadMillis))
  const after = yield* read(active)
  return {
    shards: yield* read("svc_cluster_shards"),
    rooms: yield* read("svc_rooms"),
    sockets: yield* read("svc_sockets"),
    loopPercent: after.map((value, i) =>
      Math.round(((value - (before[i] ?? 0)) / loadMillis) * 100_000)
    )
  }
})

const spreadOf = (values: ReadonlyArray<number>) => {
  const sorted = values.toSorted((a, b) => a - b)
  return {
    players: sorted.length,
    medianMillis: Math.round(sorted[Math.floor(sorted.length / 2)] ?? 0),
    worstMillis: Math.round(sorted.at(-1) ?? 0)
  }
}

/** By how many percent the fullest or emptiest runner is off the mean. */
const unevenPercent = (values: ReadonlyArray<number>): number => {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length
  return Math.round((Math.max(...values.map((value) => Math.abs(value - mean))) / mean) * 100)
}

/** Changes the runners under play, and reports what the players noticed. */
const measure = <E, R>(
  title: string,
  harness: ChaosHarness,
  players: Players,
  change: Effect.Effect<void, E, R>
) =>
  Effect.gen(function* () {
    const before = yield* epochsOf(harness)
    players.waits(performance.now())
    const since = performance.now()
    const settle = Effect.promise(() => delay(settleMillis))
    const [, starvedMillis] = yield* withStarvation(Effect.andThen(change, settle))
    const waits = players.waits(since)
    const after = yield* epochsOf(harness)
    const moved = (roomId: string) => before.get(roomId) !== after.get(roomId)
    const rooms = Array.from(new Set(waits.map(({ roomId }) => roomId)))
    const unstored = rooms.filter((roomId) => !before.has(roomId) || !after.has(roomId))
    if (unstored.length > 0) return yield* Effect.die(`rooms without a row: ${unstored.join()}`)
    const movedRooms = rooms.filter(moved).length
    const roomWaits = Map.groupBy(waits, ({ roomId }) => roomId)
    const silences = Array.from(roomWaits.values(), (of) =>
      Math.min(...of.map(({ millis }) => millis))
    )
    const load = yield* loadOf(harness)
    const millisOf = (wanted: (wait: (typeof waits)[number]) => boolean) =>
      spreadOf(waits.filter((wait) => wanted(wait)).map(({ millis }) => millis))
    const result = {
      title,
      rooms: rooms.length,
      starvedMillis,
      movedRooms,
      movedPercent: Math.round((movedRooms / rooms.length) * 100),
      /** Of each room, the longest wait of the player who waited least. */
      silence: {
        medianMillis: Math.round(silences.toSorted((a, b) => a - b)[silences.length >> 1] ?? 0),
        worstMillis: Math.round(Math.max(...silences))
      },
      /** Longest waits of players by what happened to them. */
      stayed: millisOf(({ reconnected, roomId }) => !reconnected && !moved(roomId)),
      roomMoved: millisOf(({ reconnected, roomId }) => !reconnected && moved(roomId)),
      reconnected: millisOf(({ reconnected }) => reconnected),
      lostSeats: players.lostSeats(),
      failedCalls: players.journal.takeFailures(),
      load,
      uneven: { shards: unevenPercent(load.shards), rooms: unevenPercent(load.rooms) }
    }
    console.log(JSON.stringify(result, undefined, 1))
    return result
  })

/** `apart`: the second new runner starts when the first has its shards. */
const scaling = Effect.fnUntraced(function* (rooms: number, apart: boolean) {
  const harness = yield* ChaosHarness.start(1, config)
  const players = yield* Effect.acquireRelease(
    Effect.sync(() => new Players()),
    (opened) => Effect.sync(() => opened.close())
  )
  yield* Effect.promise(() => players.open(harness.target, Math.ceil(rooms / 2)))
  const settled = Effect.promise(() => delay(settleMillis))
  const join = apart
    ? Effect.andThen(Effect.andThen(harness.join(), settled), harness.join())
    : Effect.all([harness.join(), harness.join()], { concurrency: 2, discard: true })
  const title = `one runner to three, ${apart ? "one after the other" : "both at once"}`
  const out = yield* measure(title, harness, players, join)
  // Players who come after the new runners: the balancer spreads them.
  yield* Effect.promise(() => players.open(harness.target, Math.floor(rooms / 2)))
  const spread = yield* measure("three runners, new players", harness, players, Effect.void)
  const leave = Effect.suspend(() => {
    const newest = harness.places.pop()
    return newest === undefined ? Effect.void : harness.leave(newest)
  })
  const back = yield* measure("three runners to two", harness, players, leave)
  const folder = fileURLToPath(new URL("./results/tmp/", import.meta.url))
  yield* Effect.promise(async () => {
    await mkdir(folder, { recursive: true })
    const text = JSON.stringify([out, spread, back], undefined, 2)
    await writeFile(`${folder}scaling.json`, `${text}\n`)
  })
  const faults = [...players.journal.violations, ...players.journal.noticed]
  for (const fault of faults) console.log(`FAULT: ${fault}`)
  if (faults.length > 0 || players.lostSeats() > 0) process.exitCode = 1
})

const { values } = parseArgs({
  options: {
    rooms: { type: "string", default: "60" },
    apart: { type: "boolean", default: false }
  }
})
runScript(
  scaling(Number(values.rooms), values.apart).pipe(
    Effect.scoped,
    Effect.provide(SecureRandom.layerWebCrypto)
  )
)
