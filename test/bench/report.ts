/** Prints the figures of a load as a Markdown table and writes the result file. */
import { existsSync, readFileSync } from "node:fs"
import { mkdir, writeFile } from "node:fs/promises"
import { availableParallelism, cpus, release, totalmem, type } from "node:os"
import { dirname } from "node:path"
import { fileURLToPath } from "node:url"
import packageJson from "../../package.json" with { type: "json" }
import type { Cores } from "./cores.ts"
import peersJson from "./peers/package.json" with { type: "json" }
import type { LoadResult, Plan, Ratio, ServerResult } from "./result-file.ts"

const header = [
  "server",
  "CPU us/delivery",
  "min to max",
  "p50 ms",
  "p99 ms",
  "delivered",
  "expected",
  "load core busy"
]

export function formatTable({ load, problems, ratios, servers }: LoadResult): string {
  const rows = [header, header.map((title) => "-".repeat(title.length)), ...servers.map(rowOf)]
  const widths = header.map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)))
  const table = rows.map(
    (row) => `| ${row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join(" | ")} |`
  )
  return [
    `\n${load.rooms} rooms of ${load.players} players, ${load.rate} messages a second each\n`,
    ...table,
    "",
    ...Object.entries(ratios).map(([pair, ratio]) => `${pair}: ${formatRatio(ratio)}`),
    ...problems.map((problem) => `PROBLEM: ${problem}`)
  ].join("\n")
}

function rowOf(server: ServerResult): ReadonlyArray<string> {
  const { cpuPerDelivery: cpu } = server
  return [
    server.name,
    cpu.median.toFixed(2),
    `${cpu.min.toFixed(2)} to ${cpu.max.toFixed(2)}`,
    (server.latencyP50.median / 1000).toFixed(1),
    (server.latencyP99.median / 1000).toFixed(1),
    String(server.delivered),
    String(server.expected),
    `${server.busyPercent.toFixed(0)} %`
  ]
}

function formatRatio({ max, median, min, target }: Ratio): string {
  const spread = `${median.toFixed(2)} (${min.toFixed(2)} to ${max.toFixed(2)})`
  if (target === undefined) return spread
  return `${spread}, target ${target.toFixed(2)} ${median <= target ? "met" : "missed"}`
}

export interface BenchmarkResult {
  /** Every server at every default load in full length; only this goes into the committed file. */
  readonly complete: boolean
  readonly plan: Plan
  readonly cores: Cores
  readonly results: ReadonlyArray<LoadResult>
}

/** Returns the path it wrote. */
export async function writeResult(result: BenchmarkResult): Promise<string> {
  const { complete, cores, plan, results } = result
  const folder = complete ? "./results/" : "./results/tmp/"
  const file = fileURLToPath(new URL(`${folder}fan-out.json`, import.meta.url))
  const startedAt = new Date(performance.timeOrigin).toISOString()
  const document = { startedAt, machine: machine(cores), plan, results }
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, `${JSON.stringify(document, undefined, 2)}\n`)
  return file
}

function machine(cores: Cores) {
  const limits = existsSync("/proc/self/limits") ? readFileSync("/proc/self/limits", "utf8") : ""
  return {
    cpu: cpus()[0]?.model.trim() ?? "unknown",
    cpuCount: availableParallelism(),
    memoryBytes: totalmem(),
    kernel: `${type()} ${release()}`,
    node: process.version,
    packages: {
      ws: packageJson.dependencies.ws,
      effect: packageJson.dependencies.effect,
      colyseus: peersJson.dependencies["@colyseus/core"],
      "socket.io": peersJson.dependencies["socket.io"]
    },
    openFiles: Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? 0),
    serverCore: cores.server ?? null,
    loadCore: cores.load ?? null
  }
}
