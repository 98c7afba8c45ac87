/**
 * Benchmark of room snapshots: all rooms of a runner change, and the writer stores them, pass after pass.
 * Prints how long a pass takes and the share of updates that touched no index (HOT), with the time at
 * which a row is overdue in steps, as the service writes it, and moving with each write. For that time a
 * second passes from one pass to the next.
 *
 *   node test/bench/snapshots.ts --rooms 5000 --passes 60 --state 400 --members 4 --fillfactor 70
 */
import { setTimeout as delay } from "node:timers/promises"
import { parseArgs } from "node:util"
import { NodeServices } from "@effect/platform-node"
import { Clock, Context, Effect, Layer, type Redacted, Result } from "effect"
import { SecureRandom } from "effect/crypto"
import { SqlClient } from "effect/sql"
import { poolLayer } from "#sql/database"
import { RoomRepository } from "#sql/rooms"
import { ThisNode } from "#entities/local-actors"
import { RoomActor } from "#entities/room/actor"
import type { RoomRuntime } from "#entities/room/runtime"
import { iso, openRoom, type RoomCommand, type RoomState } from "#entities/room/model"
import { toRow } from "#entities/room/snapshot"
import { decide } from "#entities/room/state"
import { RoomWriter } from "#entities/room/writer"
import { refreshMillis } from "#entities/overdue"
import { snapshotMillis } from "#entities/write-behind"
import { cloneDatabase, testServer } from "#testing/database"

const { values } = parseArgs({
  options: {
    rooms: { type: "string", default: "5000" },
    passes: { type: "string", default: "60" },
    state: { type: "string", default: "400" },
    members: { type: "string", default: "4" },
    fillfactor: { type: "string" }
  }
})
const roomCount = Number(values.rooms)
const passCount = Number(values.passes)
const stateBytes = Number(values.state)
const memberCount = Number(values.members)

/** How full pages are when rows are inserted; without it as the migrations say. */
const fillfactor = values.fillfactor === undefined ? undefined : Number(values.fillfactor)

const gateway = "node"
const connections = 10
/** An idle session publishes its counters after ten seconds. */
const statisticsMillis = 11_000

/** State that hardly compresses, as the coordinates of a game. */
const stateText = (): string =>
  Array.from({ length: Math.ceil(stateBytes / 8) }, () => Math.random().toFixed(5)).join()

const after = (state: RoomState, command: RoomCommand, now: number): RoomState =>
  Result.getOrThrow(Result.mapError(decide(state, command, now), ({ _tag }) => new Error(_tag)))
    .state

/** A room with members, created within the last hour. */
const playedRoom = (number: number, now: number): RoomState => {
  const createdAt = now - ((number * 7919) % 3_600_000)
  let state = openRoom({
    id: `rm_${String((number * 7919) % roomCount).padStart(8, "0")}_${number}`,
    environmentId: "env_1",
    code: `C${number}`,
    mode: "default",
    private: false,
    transport: "server",
    p2p: null,
    hostOnlyState: false,
    maxPlayers: Math.max(memberCount, 2),
    metadata: {},
    graceSeconds: 30,
    matched: false,
    createdAt
  })
  for (let member = 0; member < memberCount; member++) {
    const playerId = `pl_${number}_${member}`
    const connectionId = `con_${number}_${member}`
    const displayName = `Player ${member}`
    const joining = { playerId, displayName, relayOnly: false, node: gateway, connectionId }
    state = after(state, { t: "join", ...joining }, now)
  }
  return state
}

/** A clock that shows the time of the pass. */
const passClock = Effect.map(Clock.Clock, (clock) => {
  const time = { now: clock.currentTimeMillisUnsafe() }
  const shown: Clock.Clock = Object.create(clock, {
    currentTimeMillisUnsafe: { value: () => time.now },
    currentTimeMillis: { value: Effect.sync(() => time.now) }
  })
  return { time, shown }
})

/** The repository as it is, or with rows that are overdue two refresh intervals after each write. */
const repositoryOf = (stepped: boolean) =>
  stepped
    ? RoomRepository.layer
    : Layer.effect(
        RoomRepository,
        Effect.map(RoomRepository, (repository) =>
          RoomRepository.of({
            ...repository,
            save: (rows) =>
              Effect.flatMap(Clock.currentTimeMillis, (now) => {
                const dueAt = iso(now + 2 * refreshMillis)
                return repository.save(rows.map((row) => ({ ...row, dueAt })))
              })
          })
        )
      ).pipe(Layer.provide(RoomRepository.layer))

/** Opens the rooms on a fresh database; the result changes and writes all of them once. */
const makeSide = Effect.fnUntraced(function* (server: Redacted.Redacted, stepped: boolean) {
  const url = yield* cloneDatabase(server)
  const { shown, time } = yield* passClock
  const services = yield* Layer.build(
    RoomWriter.layer.pipe(
      Layer.provideMerge(repositoryOf(stepped)),
      Layer.provideMerge(poolLayer({ url, connections })),
      Layer.provideMerge(ThisNode.layer)
    )
  )
  const writer = Context.get(services, RoomWriter)
  const repository = Context.get(services, RoomRepository)
  const sql = Context.get(services, SqlClient.SqlClient)
  if (fillfactor !== undefined) {
    yield* sql`alter table rooms set (fillfactor = ${sql.literal(String(fillfactor))})`
  }
  const { now } = time
  const actors = yield* Effect.forEach(
    Array.from({ length: roomCount }, (_, number) => playedRoom(number, now)),
    Effect.fnUntraced(function* (state) {
      yield* repository.insert(toRow(state, 1, "nod_1", now))
      const runtime: RoomRuntime = {
        now: () => time.now,
        clocks: [() => time.now],
        hasLease: () => true,
        heldFrom: () => null,
        wakeAt: () => undefined,
        changed: () => writer.markDirty(actor),
        flushSoon: () => undefined,
        memberAdded: () => undefined,
        memberRemoved: () => undefined,
        shared: true,
        closed: () => undefined
      }
      const actor: RoomActor = new RoomActor(state.settings.id, 1, state, runtime)
      return actor
    }),
    { concurrency: 200 }
  )
  const pass = Effect.suspend(() => {
    time.now += 1000
    for (const actor of actors) {
      const text = stateText()
      const playerId = actor.state?.hostId ?? ""
      const command = { t: "setState", playerId, patch: { text } } as const
      actor.submit(gateway, [{ seq: 0, command }])
    }
    const startedAt = performance.now()
    return Effect.map(
      Effect.provideService(writer.flush, Clock.Clock, shown),
      () => performance.now() - startedAt
    )
  })
  /** Counters of the table since its creation. */
  const updates = Effect.gen(function* () {
    const [row] = yield* sql<{ hot: number; all: number }>`
      select n_tup_hot_upd::float8 as hot, n_tup_upd::float8 as all
      from pg_stat_user_tables where relname = 'rooms'`
    return row ?? { hot: 0, all: 0 }
  })
  return { title: stepped ? "in steps" : "moving", pass, updates, millis: new Array<number>() }
})

const at = (sorted: ReadonlyArray<number>, quantile: number): string =>
  (sorted[Math.floor((sorted.length - 1) * quantile)] ?? Number.NaN).toFixed(0)

const run = Effect.gen(function* () {
  const server = yield* testServer
  const sides = [yield* makeSide(server, false), yield* makeSide(server, true)]
  for (let pass = 0; pass < passCount; pass++) {
    for (const side of sides) {
      side.millis.push(yield* side.pass)
      yield* Effect.promise(() => delay(snapshotMillis))
    }
  }
  yield* Effect.promise(() => delay(statisticsMillis))
  for (const { millis, title, updates } of sides) {
    const { all, hot } = yield* updates
    const sorted = millis.toSorted((a, b) => a - b)
    const rate = (roomCount * millis.length * 1000) / millis.reduce((sum, each) => sum + each, 0)
    console.log(
      `${title}: ${roomCount} rooms in ${at(sorted, 0.5)} ms at the median, ${at(sorted, 0.95)} ms ` +
        `at p95; ${rate.toFixed(0)} rows a second; ${((100 * hot) / all).toFixed(1)} % of ${all} ` +
        "updates were HOT"
    )
  }
})

await Effect.runPromise(
  run.pipe(
    Effect.scoped,
    Effect.provide(NodeServices.layer),
    Effect.provide(SecureRandom.layerWebCrypto)
  )
)
