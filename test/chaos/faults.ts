/** What is done to the world, one after the other. */
import { setTimeout as delay } from "node:timers/promises"
import { Effect, type Scope } from "effect"
import type { RunnerError } from "#testing/runners"
import type { FaultProxy } from "./fault-proxy.ts"
import type { Place, World } from "./world.ts"

/** Hits the victim; what it returns mends everything. */
export interface Fault {
  readonly title: string
  /** For how long it lasts: at full length and in short. */
  readonly millis: readonly [full: number, short: number]
  /** The victim is gone, and another runner takes its place once all is well. */
  readonly gone?: true
  readonly hit: (world: World, victim: Place, other: Place) => Effect.Effect<Mend>
}

type Mend = Effect.Effect<void, RunnerError, Scope.Scope>

const wired = (
  wires: (world: World, victim: Place, other: Place) => ReadonlyArray<FaultProxy>,
  hurt: (wire: FaultProxy) => void
): Fault["hit"] =>
  Effect.fnUntraced(function* (world, victim, other) {
    const hit = wires(world, victim, other)
    for (const wire of hit) hurt(wire)
    return yield* Effect.succeed(Effect.sync(() => hit.forEach((wire) => wire.heal())))
  })

const databases = ({ places }: World) => places.map(({ database }) => database)

export const faults = {
  kill: {
    title: "kill -9 of a runner",
    millis: [0, 0],
    gone: true,
    hit: (world, victim) => Effect.as(world.kill(victim), Effect.void)
  },
  freeze: {
    title: "a frozen runner (SIGSTOP)",
    millis: [10_000, 3000],
    hit: (_, { runner }) => Effect.as(runner.signal("SIGSTOP"), runner.signal("SIGCONT"))
  },
  restart: {
    title: "Postgres restarts",
    millis: [1000, 0],
    hit: (world) => Effect.as(world.postgres.stop, Effect.orDie(world.postgresAgain))
  },
  crash: {
    title: "Postgres crashes (kill -9)",
    millis: [1000, 0],
    hit: (world) => Effect.as(world.postgres.crash, Effect.orDie(world.postgresAgain))
  },
  partition: {
    title: "a partition between two runners",
    millis: [10_000, 3000],
    hit: wired(
      (world, victim, other) => world.between(victim, other),
      (wire) => wire.block()
    )
  },
  oneWay: {
    title: "a partition one way",
    millis: [10_000, 3000],
    hit: Effect.fnUntraced(function* (world, victim, other) {
      const [there, back] = world.between(victim, other)
      there?.block("there")
      back?.block("back")
      return yield* Effect.succeed(Effect.sync(() => [there, back].forEach((wire) => wire?.heal())))
    })
  },
  slow: {
    title: "a slow database (300 ms each way)",
    millis: [10_000, 3000],
    hit: wired(databases, (wire) => wire.slow(300))
  },
  silent: {
    title: "a runner without its database (silence)",
    millis: [10_000, 3000],
    hit: wired(
      (_, { database }) => [database],
      (wire) => wire.block()
    )
  },
  reset: {
    title: "a runner's database connections reset",
    millis: [0, 0],
    hit: wired(
      (_, { database }) => [database],
      (wire) => wire.reset()
    )
  }
} as const satisfies Record<string, Fault>

export type FaultName = keyof typeof faults

export const faultNames: ReadonlyArray<string> = Object.keys(faults)

export const isFault = (name: string): name is FaultName => Object.hasOwn(faults, name)

/** The fault is there for this long. */
export const lasts = (millis: number) => Effect.promise(() => delay(millis))
