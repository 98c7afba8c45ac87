/**
 * The shared bounds of hosting, functions, voice and cards: one environment that asks for everything leaves
 * another one a place at once, or the next turn.
 */
import { assert, describe, it } from "@effect/vitest"
import { functionLogs, functions } from "#rpc/functions/limits"
import { functionSnapshots } from "#rpc/functions/runtime-limits"
import { hosting } from "#rpc/hosting/limits"
import { shareCards } from "#rpc/share/limits"
import { mediaLimits } from "#server/features/voice/media-limits"
import { FairShares, type FairSharesOptions } from "#server/platform/fair-semaphore"

const bounds: Readonly<Record<string, FairSharesOptions>> = {
  "uploads of apps": hosting.uploads,
  "downloads of apps": hosting.downloads,
  "objects of an S3 store": hosting.objectDownloads,
  "DNS queries of domains": hosting.domainQueries,
  "compression of uploads": hosting.compressions,
  "calls of crons": functions.cronCalls,
  "starts of new code": functions.validations,
  "snapshots of functions": functionSnapshots.work,
  "followed logs": functionLogs.followers,
  "joins of voice calls": { ...mediaLimits.joinsUnderWay, waitingPerKey: 0 },
  "answers in voice calls": { ...mediaLimits.waitingAnswers, waitingPerKey: 0 },
  "drawing of cards": { permits: 1, waitingPerKey: shareCards.waitingPerEnvironment }
}

/** All that one environment can hold and wait for. */
const fill = (shares: FairShares<string>): void => {
  while (shares.take("greedy"));
  for (let n = 0; shares.wait("greedy", `greedy-${n}`); n++);
}

describe("the bound on", () => {
  for (const [name, options] of Object.entries(bounds)) {
    it(`${name} has a place or the next turn for another environment`, () => {
      const shares = new FairShares<string>(options)
      fill(shares)
      assert.isAtLeast(shares.heldBy("greedy"), 1)
      if (shares.take("modest")) return
      assert.isTrue(shares.wait("modest", "modest"))
      const turns: Array<string> = []
      while (turns.length < 3 && !turns.includes("modest")) {
        turns.push(...shares.release("greedy"))
      }
      assert.include(turns.slice(0, 2), "modest", turns.join(", "))
    })
  }
})
