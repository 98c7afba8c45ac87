/**
 * Which runners are out, since others do not hear them. A runner that hears all but one and a runner
 * that hears nobody both only know that there is silence; so everybody tells whom it does not hear, and
 * all come to the same verdict. Without one, two that have lost each other would take each other's
 * shards, and whoever hears both would give them back, again and again.
 */
import { Clock, Context, Effect, Layer, Option } from "effect"
import { type RunnerAddress, ShardingConfig } from "effect/cluster"
import { Invalidation } from "#server/platform/invalidation"

/** One runner does not hear another. */
export interface Suspicion {
  readonly by: string
  readonly of: string
}

/** Longer than it takes to find out anew that there is silence. */
const keepMillis = 8000

/**
 * Who is out: whoever is suspected by one that is heard better, or as well and comes first in the
 * alphabet. So of two that have lost each other one is out, and one that has lost all others is.
 */
export const evictedRunners = (suspicions: ReadonlyArray<Suspicion>): ReadonlySet<string> => {
  const doubters = Map.groupBy(suspicions, ({ of }) => of)
  const isBelieved = ({ by, of }: Suspicion): boolean => {
    const more = (doubters.get(by)?.length ?? 0) - (doubters.get(of)?.length ?? 0)
    return more < 0 || (more === 0 && by < of)
  }
  return new Set(suspicions.filter(isBelieved).map(({ of }) => of))
}

export interface MembershipView {
  /**
   * Tells everybody whether this runner hears another: silence again and again. An answer has gone both
   * ways, so whoever gets one speaks for both; what one has said that is gone counts no more.
   */
  readonly report: (
    of: RunnerAddress.RunnerAddress,
    heard: "silent" | "answers" | "gone"
  ) => Effect.Effect<void>
  readonly isEvicted: (address: RunnerAddress.RunnerAddress) => boolean
  /** Does the other say that it does not hear this runner? */
  readonly suspectsSelf: (by: RunnerAddress.RunnerAddress) => boolean
  /** Is this runner out itself? */
  readonly isSelfEvicted: () => boolean
}

/** A runner that is alone hears nobody, and nobody it. */
export const Membership = Context.Reference<MembershipView>(
  "server/cluster/membership/Suspicions",
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

/** Told over the channel on which everybody hears that the list of runners has changed. */
export const MembershipLive = Layer.effect(
  Membership,
  Effect.gen(function* () {
    const invalidation = yield* Invalidation
    const { runnerAddress } = yield* ShardingConfig.ShardingConfig
    const clock = yield* Clock.Clock
    const self = Option.match(runnerAddress, { onNone: () => "", onSome: textOf })
    /** Until when a suspicion is believed. */
    const until = new Map<string, number>()

    yield* invalidation.subscribe(({ id, kind }) =>
      Effect.sync(() => {
        const [by = "", of, heard] = kind === "runners" ? id.split(" ") : []
        if (of === undefined) return
        if (heard === "silent") {
          until.set(`${by} ${of}`, clock.currentTimeMillisUnsafe() + keepMillis)
        } else for (const pair of [`${by} ${of}`, `${of} ${by}`]) until.delete(pair)
      })
    )

    const present = (): ReadonlyArray<Suspicion> => {
      const now = clock.currentTimeMillisUnsafe()
      for (const [who, end] of until) if (end < now) until.delete(who)
      return Array.from(until.keys(), (who) => {
        const [by = "", of = ""] = who.split(" ")
        return { by, of }
      })
    }
    const isOut = (text: string): boolean => until.size > 0 && evictedRunners(present()).has(text)

    return {
      report: (of, heard) =>
        invalidation.publish({ kind: "runners", id: `${self} ${textOf(of)} ${heard}` }),
      isEvicted: (address) => isOut(textOf(address)),
      suspectsSelf: (by) => until.has(`${textOf(by)} ${self}`),
      isSelfEvicted: () => isOut(self)
    }
  })
)
