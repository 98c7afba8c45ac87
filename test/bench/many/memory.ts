/** What memory a server's process takes, as the operating system and V8 see it. */
import { once } from "node:events"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import * as Schema from "effect/Schema"
import type { RunningServer } from "../machine/process.ts"

const reporter = fileURLToPath(new URL("./memory-reporter.ts", import.meta.url))

/** Where the reporter of a process listens. */
export const reporterPath = (pid: number): string => join(tmpdir(), `bench-memory-${pid}.sock`)

/** Bytes. `rss` is what the process takes of the machine, the others are parts of it. */
export const Memory = Schema.Struct({
  rss: Schema.Number,
  heapUsed: Schema.Number,
  external: Schema.Number
})
export type Memory = typeof Memory.Type

const decodeMemory = Schema.decodeUnknownSync(Schema.fromJsonString(Memory))

/** Starts a server that can be asked for its memory; `further` modules are preloaded, too. */
export async function withReporter<A>(
  start: () => Promise<A>,
  further: ReadonlyArray<string> = []
): Promise<A> {
  const before = process.env["NODE_OPTIONS"]
  const imports = [reporter, ...further].map((path) => `--import ${path}`).join(" ")
  process.env["NODE_OPTIONS"] = `${before ?? ""} --expose-gc ${imports}`
  try {
    return await start()
  } finally {
    if (before === undefined) delete process.env["NODE_OPTIONS"]
    else process.env["NODE_OPTIONS"] = before
  }
}

/** The memory of a server's process: as it is, or of what is alive. */
export async function memoryOf(pid: number, question: "now" | "gc"): Promise<Memory> {
  const socket = connect(reporterPath(pid))
  let answer = ""
  socket.on("data", (chunk: Buffer) => (answer += chunk.toString()))
  socket.write(question)
  await once(socket, "end")
  return decodeMemory(answer)
}

const settleStepMs = 500
const settleSteps = 60
const quietPercent = 8

/** Waits until the server has nothing more to do (at most half a minute). */
export async function settled(server: RunningServer): Promise<void> {
  let quiet = 0
  let before = await server.cpuMicros()
  for (let step = 0; step < settleSteps && quiet < 2; step++) {
    await wait(settleStepMs)
    const now = await server.cpuMicros()
    quiet = (now - before) / 10 / settleStepMs < quietPercent ? quiet + 1 : 0
    before = now
  }
}
