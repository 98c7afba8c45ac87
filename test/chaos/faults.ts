/** The faults that a chaos run injects. */
import { setTimeout as delay } from "node:timers/promises"
import { Effect, type Scope } from "effect"
import type { RunnerError } from "#testing/runners"
import type { FaultProxy } from "./fault-proxy.ts"
import type { RunnerSlot, ChaosHarness } from "./chaos-harness.ts"

/** A fault. `hit` injects it and returns the repair. */
export interface Fault {
  readonly title: string
  /** How long it lasts: in the full and in the short form. */
  readonly millis: readonly [full: number, short: number]
  /** The victim has exited; another runner takes its slot afterwards. */
  readonly gone?: true
  readonly hit: (
    harness: ChaosHarness,
    victim: RunnerSlot,
    other: RunnerSlot
  ) => Effect.Effect<Repair>
}

type Repair = Effect.Effect<void, RunnerError, Scope.Scope>

const proxyFault = (
  wires: (
    harness: ChaosHarness,
    victim: RunnerSlot,
    other: RunnerSlot
  ) => ReadonlyArray<FaultProxy>,
  hurt: (wire: FaultProxy) => void
): Fault["hit"] =>
  Effect.fnUntraced(function* (harness, victim, other) {
    const hit = wires(harness, victim, other)
    for (const wire of hit) hurt(wire)
    return yield* Effect.succeed(Effect.sync(() => hit.forEach((wire) => wire.heal())))
  })

const databases = ({ places }: ChaosHarness) => places.map(({ database }) => database)

export const faults = {
  kill: {
    title: "kill -9 of a runner",
    millis: [0, 0],
    gone: true,
    hit: (harness, victim) => Effect.as(harness.kill(victim), Effect.void)
  },
  freeze: {
    title: "a frozen runner (SIGSTOP)",
    millis: [10_000, 3000],
    hit: (_, { runner }) => Effect.as(runner.signal("SIGSTOP"), runner.signal("SIGCONT"))
  },
  restart: {
    title: "Postgres restarts",
    millis: [1000, 0],
    hit: (harness) => Effect.as(harness.postgres.stop, Effect.orDie(harness.postgresAgain))
  },
  crash: {
    title: "Postgres crashes (kill -9)",
    millis: [1000, 0],
    hit: (harness) => Effect.as(harness.postgres.crash, Effect.orDie(harness.postgresAgain))
  },
  partition: {
    title: "a partition between two runners",
    millis: [10_000, 3000],
    hit: proxyFault(
      (harness, victim, other) => harness.between(victim, other),
      (wire) => wire.block()
    )
  },
  oneWay: {
    title: "a partition one way",
    millis: [10_000, 3000],
    hit: Effect.fnUntraced(function* (harness, victim, other) {
      const [there, back] = harness.between(victim, other)
      there?.block("there")
      back?.block("back")
      return yield* Effect.succeed(Effect.sync(() => [there, back].forEach((wire) => wire?.heal())))
    })
  },
  slow: {
    title: "a slow database (300 ms each way)",
    millis: [10_000, 3000],
    hit: proxyFault(databases, (wire) => wire.slow(300))
  },
  silent: {
    title: "a runner without its database (silence)",
    millis: [10_000, 3000],
    hit: proxyFault(
      (_, { database }) => [database],
      (wire) => wire.block()
    )
  },
  reset: {
    title: "a runner's database connections reset",
    millis: [0, 0],
    hit: proxyFault(
      (_, { database }) => [database],
      (wire) => wire.reset()
    )
  }
} as const satisfies Record<string, Fault>

export type FaultName = keyof typeof faults

export const faultNames: ReadonlyArray<string> = Object.keys(faults)

export const isFault = (name: string): name is FaultName => Object.hasOwn(faults, name)

/** Sleeps in real time. */
export const sleepMillis = (millis: number) => Effect.promise(() => delay(millis))
