/** What disturbs the calls of a round: each holds them at another await of their way. */
import { setTimeout as pause } from "node:timers/promises"
import { Clock, Effect, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { poolLayer } from "#sql/database"
import { guest, type TestPlayer } from "#testing/players"
import type { Chance } from "../../simulation/random.ts"
import { ban } from "../moderation-calls.ts"
import { functionProcesses } from "./leftovers.ts"
import { ordinaryCall } from "./ordinary-calls.ts"
import { type PassingWorld, setRound } from "./recorded-function.ts"

export const disturbances = [
  "none",
  "cold",
  "locked table",
  "frozen process",
  "frozen runner",
  "killed process",
  "banned players"
] as const
export type Disturbance = (typeof disturbances)[number]

export interface Disturbed {
  /** Players that only this round has. */
  readonly players: ReadonlyArray<TestPlayer>
  /** Whether the calls of bystanders may fail. */
  readonly mayFail: boolean
  readonly meanwhile: Effect.Effect<void>
  /** What went wrong with the disturbance itself, after the calls. */
  readonly after: Effect.Effect<ReadonlyArray<string>>
}

const undisturbed: Disturbed = {
  players: [],
  mayFail: false,
  meanwhile: Effect.void,
  after: Effect.succeed([])
}

const freezeMillis = 400

const wait = (millis: number) => Effect.promise(() => pause(millis))

/** Holds every statement on the table for a while. */
const lock = (databaseUrl: string, table: string): Effect.Effect<void> =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const locked = sql`lock table ${sql(table)} in access exclusive mode`
    yield* sql.withTransaction(Effect.andThen(locked, wait(freezeMillis)))
  }).pipe(
    Effect.provide(poolLayer({ url: Redacted.make(databaseUrl), connections: 1 })),
    Effect.orDie
  )

/** Sends a signal to the process of the function. */
const signal = ({ first }: PassingWorld, name: NodeJS.Signals) =>
  Effect.sync(() => {
    for (const { pid } of functionProcesses(first.pid)) process.kill(pid, name)
  })

/** Freezes and thaws. */
const during = (freeze: Effect.Effect<void>, thaw: Effect.Effect<void>): Effect.Effect<void> =>
  Effect.andThen(Effect.andThen(freeze, wait(freezeMillis)), thaw)

/** Longest time in milliseconds that a process without calls takes to end. With a call it takes longer. */
const drainMillis = 10_000

/** Ends the process of the function; returns what went wrong. */
const coolDown = Effect.fnUntraced(function* ({ target }: PassingWorld, value: string) {
  const from = yield* Clock.currentTimeMillis
  yield* setRound(target, value)
  const took = (yield* Clock.currentTimeMillis) - from
  return took < drainMillis
    ? []
    : [`a call of a client that has gone is under way after ${took} ms`]
})

const cold = Effect.fnUntraced(function* (
  world: PassingWorld,
  databaseUrl: string,
  chance: Chance
) {
  const faults = yield* coolDown(world, String(chance.integer(1, 1_000_000_000)))
  const meanwhile = chance.happens(0.5) ? lock(databaseUrl, "function_deployments") : Effect.void
  return { ...undisturbed, meanwhile, after: Effect.succeed(faults) }
})

const banned = Effect.fnUntraced(function* ({ target, ways }: PassingWorld, chance: Chance) {
  const players = yield* Effect.all(Array.from({ length: 4 }, () => guest(target)))
  const bans = players.map(({ id }) => Effect.andThen(wait(chance.integer(0, 60)), ban(target, id)))
  const codes = Effect.forEach(players, (player) =>
    Effect.promise(() => ordinaryCall(ways.service, player, "banned"))
  )
  const after = Effect.map(codes, (faults) =>
    faults.flatMap((fault) =>
      fault?.includes("player_banned") === true ? [] : [`a banned player ${fault ?? "is served"}`]
    )
  )
  const meanwhile = Effect.all(bans, { concurrency: "unbounded", discard: true })
  return { ...undisturbed, players, meanwhile, after }
})

/** Prepares a disturbance. */
export const disturbing = Effect.fnUntraced(function* (
  disturbance: Disturbance,
  world: PassingWorld,
  { chance, databaseUrl }: { readonly chance: Chance; readonly databaseUrl: string }
) {
  const { first, target } = world
  switch (disturbance) {
    case "none":
      return undisturbed
    case "cold":
      return yield* cold(world, databaseUrl, chance)
    case "locked table": {
      const players = yield* Effect.all([guest(target), guest(target), guest(target)])
      const table = chance.pick(["players", "sanctions", "sessions"]) ?? "players"
      return { ...undisturbed, players, meanwhile: lock(databaseUrl, table) }
    }
    case "frozen process":
      return {
        ...undisturbed,
        meanwhile: during(signal(world, "SIGSTOP"), signal(world, "SIGCONT"))
      }
    case "frozen runner":
      return {
        ...undisturbed,
        meanwhile: during(first.signal("SIGSTOP"), first.signal("SIGCONT"))
      }
    case "killed process": {
      const meanwhile = Effect.andThen(wait(chance.integer(5, 60)), signal(world, "SIGKILL"))
      return { ...undisturbed, mayFail: true, meanwhile }
    }
    case "banned players":
      return yield* banned(world, chance)
  }
})
