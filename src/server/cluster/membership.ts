/**
 * Decides which runners are evicted, from all reports of unreachable peers. A runner that cannot reach
 * one other and a runner that can reach nobody observe the same silence, so each one publishes its
 * reports and all come to the same decision. Without it, two runners that have lost each other would
 * take each other's shards again and again.
 */
import { Clock, Context, Effect, Layer, Option } from "effect"
import { type RunnerAddress, ShardingConfig } from "effect/cluster"
import { Invalidation } from "#server/platform/invalidation"

/** A report that the runner `by` does not reach the runner `of`. */
export interface Suspicion {
  readonly by: string
  readonly of: string
}

/** Lifetime of a report; longer than it takes to detect the same silence again. */
const suspicionMillis = 8000

/**
 * The evicted runners. A report counts if its reporter is suspected by fewer runners than its subject,
 * or by as many and its address sorts first. So of two that have lost each other one is evicted, and a
 * runner that has lost all others is evicted too.
 */
export const evictedRunners = (suspicions: ReadonlyArray<Suspicion>): ReadonlySet<string> => {
  const bySubject = Map.groupBy(suspicions, ({ of }) => of)
  const counts = ({ by, of }: Suspicion): boolean => {
    const difference = (bySubject.get(by)?.length ?? 0) - (bySubject.get(of)?.length ?? 0)
    return difference < 0 || (difference === 0 && by < of)
  }
  return new Set(suspicions.filter(counts).map(({ of }) => of))
}

export interface MembershipView {
  /**
   * Publishes whether this runner reaches another one; repeat it while the other is silent. A reply
   * proves both directions, so `answers` also withdraws the other's report. `gone` withdraws what the
   * dead runner has reported.
   */
  readonly report: (
    of: RunnerAddress.RunnerAddress,
    status: "silent" | "answers" | "gone"
  ) => Effect.Effect<void>
  readonly isEvicted: (address: RunnerAddress.RunnerAddress) => boolean
  /** Whether the other runner has reported this one as silent. */
  readonly suspectsSelf: (by: RunnerAddress.RunnerAddress) => boolean
  readonly isSelfEvicted: () => boolean
}

/** The default is for a single node: nobody is evicted. */
export const Membership = Context.Reference<MembershipView>(
  "server/cluster/membership/Membership",
  {
    defaultValue: () => ({
      report: () => Effect.void,
      isEvicted: () => false,
      suspectsSelf: () => false,
      isSelfEvicted: () => false
    })
  }
)

const textOf = ({ host, port }: RunnerAddress.RunnerAddress): string => `${host}:${port}`

/** Exchanges the reports over the invalidation channel, as changes of the runner list. */
export const MembershipLive = Layer.effect(
  Membership,
  Effect.gen(function* () {
    const invalidation = yield* Invalidation
    const { runnerAddress } = yield* ShardingConfig.ShardingConfig
    const clock = yield* Clock.Clock
    const self = Option.match(runnerAddress, { onNone: () => "", onSome: textOf })
    /** Expiry of each report, by `<by> <of>`, Unix milliseconds. */
    const expirations = new Map<string, number>()

    yield* invalidation.subscribe(({ id, kind }) =>
      Effect.sync(() => {
        const [by = "", of, status] = kind === "runners" ? id.split(" ") : []
        if (of === undefined) return
        if (status === "silent") {
          expirations.set(`${by} ${of}`, clock.currentTimeMillisUnsafe() + suspicionMillis)
        } else for (const pair of [`${by} ${of}`, `${of} ${by}`]) expirations.delete(pair)
      })
    )

    const current = (): ReadonlyArray<Suspicion> => {
      const now = clock.currentTimeMillisUnsafe()
      for (const [pair, end] of expirations) if (end < now) expirations.delete(pair)
      return Array.from(expirations.keys(), (pair) => {
        const [by = "", of = ""] = pair.split(" ")
        return { by, of }
      })
    }
    const isEvicted = (address: string): boolean =>
      expirations.size > 0 && evictedRunners(current()).has(address)

    return {
      report: (of, status) =>
        invalidation.publish({ kind: "runners", id: `${self} ${textOf(of)} ${status}` }),
      isEvicted: (address) => isEvicted(textOf(address)),
      suspectsSelf: (by) => expirations.has(`${textOf(by)} ${self}`),
      isSelfEvicted: () => isEvicted(self)
    }
  })
)
