/**
 * Runs a benchmark by its name, with its arguments, or lists all: `npm run bench`, `npm run bench data -- --short`.
 * See README.md.
 */
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"

/** What each benchmark measures. Its file has its name. */
const benchmarks: Readonly<Record<string, string>> = {
  "back-pressure": "What one client that stops reading or floods costs the others",
  channels: "One publisher and a large audience: CPU per delivery and latency",
  "client-sizes": "Sizes of the typed client and of four others in a page",
  connections: "Memory and CPU of an idle connection, and the cost of connecting",
  data: "Sign-ins, saves and stats a second over HTTP",
  deploy: "Time until all players of a runner that restarts are back in their rooms",
  durable: "What a durable mode adds to the reply to a confirmed change of state",
  "event-loop": "The longest pause of the event loop of a full node",
  "fan-out":
    "Time until a message reaches the other players of its room, and how many one core delivers",
  functions: "Cold start, calls a second and memory of functions",
  hosting: "Requests a second for hosted files, beside sirv and nginx",
  matchmaking: "Time until thousands of players have a room, and the cost of a ticket",
  recovery: "How long a room is silent when its runner fails, and what it loses",
  scaling: "What players notice while one runner becomes three and then two",
  share: "Card images a second, and what drawing costs the players of a room",
  "slow-clients": "Memory and latency that slow clients cost the others",
  snapshots: "How long a pass over the snapshots of all rooms takes",
  stall: "Time until each room works again after Postgres was frozen",
  "two-nodes": "Fan-out between players of two runners",
  voice: "CPU, loss and memory of a call of many people",
  "voice-deaths": "When players hear each other again after the media process died"
}

/** Benchmarks that are a part of another file. */
const parts: Readonly<Record<string, ReadonlyArray<string>>> = {
  "two-nodes": ["fan-out", "--only", "two-runners"]
}

const names = Object.keys(benchmarks)
const width = Math.max(...names.map(({ length }) => length))
const list = names.map((name) => `  ${name.padEnd(width)}  ${benchmarks[name]}`).join("\n")
const usage = `npm run bench <name> [-- <arguments>], of these:\n\n${list}\n`

const [name, ...args] = process.argv.slice(2)
if (name === undefined) {
  process.stdout.write(usage)
} else if (!names.includes(name)) {
  process.stderr.write(`There is no benchmark ${JSON.stringify(name)}: ${usage}`)
  process.exitCode = 1
} else {
  const [file, ...own] = parts[name] ?? [name]
  const path = fileURLToPath(new URL(`${file}.ts`, import.meta.url))
  const child = spawn(process.execPath, [path, ...own, ...args], { stdio: "inherit" })
  // The benchmark stops what it has started; Ctrl-C reaches it, too.
  process.on("SIGINT", () => {})
  process.on("SIGTERM", () => child.kill("SIGTERM"))
  child.on("exit", (code) => {
    process.exitCode = code ?? 1
  })
}
