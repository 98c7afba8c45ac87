/** `operator/main.ts runners`: lists the runners of the cluster, as the live view does outside production. */
import { Console, DateTime, Effect } from "effect"
import { Command } from "effect/cli"
import { liveLimits } from "#rpc/live"
import { type NodeReport, NodeRepository } from "#sql/live/nodes"

const bytesPerMebibyte = 2 ** 20

const columns = ["runner", "state", "load", "rooms", "players", "connections", "memory", "release"]

const rowOf = ({ document, node }: NodeReport): ReadonlyArray<string> => [
  document.address ?? node,
  document.draining ? "draining" : "running",
  `${Math.round(document.load * 100)} %`,
  `${document.rooms}`,
  `${document.players}`,
  `${document.connections}`,
  `${Math.round(document.memoryBytes / bytesPerMebibyte)} MiB`,
  document.release
]

/** Pads the cells of each column to the same width. */
export const runnersTable = (reports: ReadonlyArray<NodeReport>): string => {
  const rows = [columns, ...reports.map(rowOf)]
  const widths = columns.map((_, n) => Math.max(...rows.map((row) => row[n]?.length ?? 0)))
  return rows
    .map((row) =>
      row
        .map((cell, n) => cell.padEnd(widths[n] ?? 0))
        .join("  ")
        .trimEnd()
    )
    .join("\n")
}

export const runnersCommand = Command.make(
  "runners",
  {},
  Effect.fnUntraced(function* () {
    const nodes = yield* NodeRepository
    const since = DateTime.subtract(yield* DateTime.now, { milliseconds: liveLimits.trustMillis })
    const reports = yield* nodes.read(since)
    yield* Console.log(
      reports.length === 0
        ? "No runner has reported in the last 10 seconds."
        : runnersTable(reports)
    )
  })
).pipe(Command.withDescription("List the runners of the cluster with their load"))
