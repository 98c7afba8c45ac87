/** Tables on the console and the result files of the benchmarks with many players. */
import { existsSync, readFileSync } from "node:fs"
import { mkdir, writeFile } from "node:fs/promises"
import { availableParallelism, cpus, release, totalmem, type } from "node:os"
import { dirname } from "node:path"
import { fileURLToPath } from "node:url"
import packageJson from "../../../package.json" with { type: "json" }
import type { Cores } from "../machine/cores.ts"

type Row = ReadonlyArray<string>

/** A Markdown table under a title. */
export function formatTable(title: string, header: Row, body: ReadonlyArray<Row>): string {
  const rows = [header, header.map((cell) => "-".repeat(cell.length)), ...body]
  const widths = header.map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)))
  const lines = rows.map(
    (row) => `| ${row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join(" | ")} |`
  )
  return [`\n${title}\n`, ...lines, ""].join("\n")
}

export const print = (text: string): void => void process.stdout.write(`${text}\n`)

export interface BenchmarkResult {
  /** The name of the benchmark and of its file. */
  readonly name: string
  /** Everything in full length; only this goes into the committed file. */
  readonly complete: boolean
  readonly cores: Cores
  readonly plan: object
  readonly results: object
  /** Why the figures must not be used; empty when they may. */
  readonly problems: ReadonlyArray<string>
}

/** Prints the problems and writes the result file. */
export async function writeResult(result: BenchmarkResult): Promise<void> {
  const { complete, cores, name, ...rest } = result
  const folder = complete ? "../results/" : "../results/tmp/"
  const file = fileURLToPath(new URL(`${folder}${name}.json`, import.meta.url))
  const startedAt = new Date(performance.timeOrigin).toISOString()
  await mkdir(dirname(file), { recursive: true })
  const document = { startedAt, machine: machine(cores), ...rest }
  await writeFile(file, `${JSON.stringify(document, undefined, 2)}\n`)
  for (const problem of result.problems) print(`PROBLEM: ${problem}`)
  print(`written to ${file}`)
}

/** How many files (and sockets) this process and its children may have open. */
export function openFilesLimit(): number {
  const limits = existsSync("/proc/self/limits") ? readFileSync("/proc/self/limits", "utf8") : ""
  const limit = /^Max open files\s+(\d+)/m.exec(limits)?.[1]
  return limit === undefined ? Number.POSITIVE_INFINITY : Number(limit)
}

const portRange = "/proc/sys/net/ipv4/ip_local_port_range"

/** Refuses more sockets than the machine lets a process open to one server, from so many addresses. */
export function requireSockets(count: number, addresses = 1): void {
  const spare = 500
  if (openFilesLimit() < count + spare) {
    throw new Error(
      `${count} sockets need ${count + spare} open files, the limit is ${openFilesLimit()}: ` +
        `run \`ulimit -n ${count + spare}\` first (the hard limit may be lower), or take a smaller --count`
    )
  }
  if (!existsSync(portRange)) return
  const [low = 0, high = 65_535] = readFileSync(portRange, "utf8").trim().split(/\s+/).map(Number)
  const ports = (high - low + 1) * addresses
  if (ports < count + spare) {
    throw new Error(
      `${count} sockets to one server need as many ports, ${portRange} has ${ports}: ` +
        "widen it (sysctl net.ipv4.ip_local_port_range), or take a smaller --count"
    )
  }
}

function machine(cores: Cores) {
  const files = openFilesLimit()
  return {
    cpu: cpus()[0]?.model.trim() ?? "unknown",
    cpuCount: availableParallelism(),
    memoryBytes: totalmem(),
    kernel: `${type()} ${release()}`,
    node: process.version,
    packages: { ws: packageJson.dependencies.ws, effect: packageJson.dependencies.effect },
    openFiles: Number.isFinite(files) ? files : null,
    serverCore: cores.server ?? null,
    loadCore: cores.load ?? null
  }
}
