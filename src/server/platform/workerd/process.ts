/**
 * Process of workerd. It gets its configuration over stdin, so that no secret is in its arguments.
 * It reports over a pipe of its own when its sockets listen. Its environment is empty, and it dies
 * with the service.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { Readable } from "node:stream"
import { Data, Schema } from "effect"
import { type Confinement, confine } from "./command.ts"
import { readLines } from "./line-reader.ts"
import { readUsage, watchCpu } from "../process-usage.ts"
import type { Programs } from "./programs.ts"

export interface WorkerdOptions {
  readonly programs: Programs
  readonly confinement: Confinement
  /** The configuration, in binary form. */
  readonly config: Uint8Array
  /** The address of each socket: `unix:/path`. */
  readonly sockets: Readonly<Record<string, string>>
  /** Addresses of services outside. */
  readonly externals: Readonly<Record<string, string>>
  /**
   * Longest duration of the start, and its CPU time: a busy machine needs longer for the same work.
   */
  readonly startMillis: number
  readonly startCpuMillis: number
  /** The longest line of output, in bytes. */
  readonly lineBytes: number
  readonly onLine: (line: string) => void
}

/** Error for a process that did not come to listen. `output` is the text that it has written. */
export class StartFailure extends Data.TaggedError("StartFailure")<{
  readonly kind: "ended" | "late"
  readonly output: string
  /** CPU time that a process without an end has used. */
  readonly cpuMillis: number
}> {}

const Listening = Schema.fromJsonString(
  Schema.Struct({ event: Schema.Literal("listen"), socket: Schema.String })
)
const decodeListening = Schema.decodeUnknownOption(Listening)

const outputLines = 100

const argumentsOf = ({ externals, sockets }: WorkerdOptions): ReadonlyArray<string> => [
  "serve",
  "--binary",
  // Its own workers for databases and files need features that it calls experimental.
  "--experimental",
  ...Object.entries(sockets).map(([name, address]) => `--socket-addr=${name}=${address}`),
  ...Object.entries(externals).map(([name, address]) => `--external-addr=${name}=${address}`),
  "--control-fd=3",
  "-"
]

export class WorkerdProcess {
  readonly pid: number
  /** Resolves with the last output when the process has ended. */
  readonly exited: Promise<string>
  readonly #child: ChildProcess

  private constructor(child: ChildProcess, pid: number, exited: Promise<string>) {
    this.#child = child
    this.pid = pid
    this.exited = exited
  }

  /** Starts a process; fails with {@link StartFailure} unless all sockets listen in time. */
  static async start(options: WorkerdOptions): Promise<WorkerdProcess> {
    const { confinement, programs } = options
    const command = [programs.workerd, ...argumentsOf(options)]
    const [file, ...args] = confine(programs, confinement, command)
    const child = spawn(file, args, { stdio: ["pipe", "pipe", "pipe", "pipe"], env: { TZ: "UTC" } })
    const output: Array<string> = []
    const onLine = (line: string): void => {
      output.push(line)
      if (output.length > outputLines) output.shift()
      options.onLine(line)
    }
    const exited = new Promise<string>((resolve) => {
      child.once("error", (error) => resolve(error.message))
      child.once("close", () => resolve(output.join("\n")))
    })
    // A process that ends at once does not read its configuration.
    child.stdin.on("error", () => undefined)
    child.stdin.end(options.config)
    readLines(child.stdout, options.lineBytes, onLine)
    readLines(child.stderr, options.lineBytes, onLine)
    await untilListening(child, options, exited)
    return new WorkerdProcess(child, child.pid ?? 0, exited)
  }

  kill(): void {
    this.#child.kill("SIGKILL")
  }
}

const untilListening = (
  child: ChildProcess,
  { lineBytes, sockets, startCpuMillis, startMillis }: WorkerdOptions,
  exited: Promise<string>
): Promise<void> =>
  new Promise((resolve, reject) => {
    const waiting = new Set(Object.keys(sockets))
    let kind: StartFailure["kind"] = "ended"
    let cpuMillis = 0
    const end = (): void => {
      kind = "late"
      cpuMillis = readUsage(child.pid ?? 0)?.cpuMillis ?? 0
      child.kill("SIGKILL")
    }
    const deadline = setTimeout(end, startMillis)
    const endWatch = watchCpu(child.pid ?? 0, startCpuMillis, end)
    const settle = (): void => {
      clearTimeout(deadline)
      endWatch()
    }
    void exited.then((output) => {
      settle()
      reject(new StartFailure({ kind, output, cpuMillis }))
    })
    const control = child.stdio[3]
    if (!(control instanceof Readable)) return
    readLines(control, lineBytes, (line) => {
      const event = decodeListening(line)
      if (event._tag === "Some") waiting.delete(event.value.socket)
      if (waiting.size > 0) return
      settle()
      resolve()
    })
  })
