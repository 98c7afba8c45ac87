/** How late the event loop of a server's process is, and what the machine keeps from it. */
import { once } from "node:events"
import { existsSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as Schema from "effect/Schema"

/** Module to preload into the server. */
export const loopReporter = fileURLToPath(new URL("./loop-reporter.ts", import.meta.url))

/** Where the reporter of a process listens. */
export const loopPath = (pid: number): string => join(tmpdir(), `bench-loop-${pid}.sock`)

const Loop = Schema.Struct({
  /** Milliseconds that the event loop was late. */
  p99: Schema.Number,
  max: Schema.Number,
  /** Milliseconds of CPU of the main thread between two times that it was free, at most. */
  turn: Schema.Number,
  /** What garbage collection took of the main thread. */
  gcMillis: Schema.Number,
  /** Collections of the whole heap. */
  majors: Schema.Number
})
export type Loop = typeof Loop.Type

const decodeLoop = Schema.decodeUnknownSync(Schema.fromJsonString(Loop))

/** What the event loop of a server did since the last question. */
export async function loopOf(pid: number): Promise<Loop> {
  const socket = connect(loopPath(pid))
  let answer = ""
  socket.on("data", (chunk: Buffer) => (answer += chunk.toString()))
  await once(socket, "end")
  return decodeLoop(answer)
}

const microsPerNano = 1 / 1000

/** For how many microseconds the main thread was ready and had no core; 0 where Linux does not tell. */
export async function waitedMicros(pid: number): Promise<number> {
  const path = `/proc/${pid}/schedstat`
  if (!existsSync(path)) return 0
  const [, waited = "0"] = (await readFile(path, "utf8")).split(" ")
  return Number(waited) * microsPerNano
}

const kernelCounters = "/proc/net/netstat"

/**
 * Connections that the kernel has dropped since it started, as the server did not take those before; their
 * clients try again after 1, 3 and 7 seconds. 0 where Linux does not tell.
 */
export async function droppedConnections(): Promise<number> {
  if (!existsSync(kernelCounters)) return 0
  const lines = (await readFile(kernelCounters, "utf8")).split("\n")
  const [names = [], values = []] = lines
    .filter((line) => line.startsWith("TcpExt:"))
    .map((line) => line.split(" "))
  return Number(values[names.indexOf("ListenDrops")] ?? 0)
}
