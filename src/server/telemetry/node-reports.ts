/**
 * Reports every few seconds what this node is and carries: address, release, load and counts. The live
 * view lists the nodes. A node that stops reports once more that it drains.
 */
import { performance } from "node:perf_hooks"
import { DateTime, Effect, Layer, Schedule } from "effect"
import { liveLimits } from "#rpc/live"
import { type NodeDocument, NodeRepository } from "#sql/live/nodes"
import { ThisNode } from "#entities/local-actors"
import { entitiesOnNode } from "#entities/registry"
import { RunnerRelease } from "#server/cluster/runner-versions"
import { WaitingPlayers } from "#server/cluster/waiting-players"
import { Gateway } from "#server/gateway/gateway"
import { sweepDaily } from "#server/platform/database"
import { Settings } from "#server/platform/settings/settings"

/** Timeout of the last report: the node does not wait for a database that is gone. */
const drainingMillis = 1000

/** Returns the share of the time in which the event loop was busy since the last call. */
const makeLoad = () => {
  let before = performance.eventLoopUtilization()
  return () => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, before)
    before = now
    return Math.round(utilization * 1000) / 1000
  }
}

const makeCounts = Effect.gen(function* () {
  const { sockets } = yield* Gateway
  const counts = (yield* entitiesOnNode).flatMap((entity) => entity.counts)
  return () => {
    const sums = { connections: sockets.size, rooms: 0, players: 0, channels: 0, calls: 0 }
    for (const { field, of } of counts) if (field !== undefined) sums[field] += of()
    return sums
  }
})

const makeDocument = Effect.gen(function* () {
  const { runner } = yield* Settings
  const { release } = yield* RunnerRelease
  const waiting = yield* WaitingPlayers
  const counts = yield* makeCounts
  const load = makeLoad()
  const address = runner === undefined ? null : `${runner.host}:${runner.port}`
  return (draining: boolean): NodeDocument => ({
    address,
    release,
    startedAt: Math.round(performance.timeOrigin),
    load: load(),
    memoryBytes: process.memoryUsage.rss(),
    ...counts(),
    draining,
    waiting: waiting.environments
  })
})

export const NodeReports = Layer.effectDiscard(
  Effect.gen(function* () {
    const repository = yield* NodeRepository
    const { id: node } = yield* ThisNode
    const document = yield* makeDocument
    const report = (draining: boolean) =>
      Effect.flatMap(DateTime.now, (reportedAt) =>
        repository.write({ node, reportedAt, document: document(draining) })
      ).pipe(
        Effect.tapDefect((defect) => Effect.logDebug("Failed to report this node", defect)),
        Effect.exit
      )
    yield* Effect.addFinalizer(() => Effect.timeoutOption(report(true), drainingMillis))
    yield* report(false).pipe(
      Effect.repeat(Schedule.spaced(liveLimits.reportMillis)),
      Effect.forkScoped
    )
    yield* sweepDaily("Reports of nodes", (now) =>
      repository.sweep(DateTime.subtract(now, { hours: 1 }))
    )
  })
)
