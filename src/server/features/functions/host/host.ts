/**
 * Host of one environment. It loads the environment's code, starts it under the supervisor, and calls
 * it. It also receives all logs, usage and requests of the process.
 */
import { randomBytes } from "node:crypto"
import type { Server } from "node:http"
import { join } from "node:path"
import { Data } from "effect"
import { functionRuntime } from "#rpc/functions/runtime-limits"
import { readUsage } from "#server/platform/process-usage"
import { StartFailure, type WorkerdProcess } from "#server/platform/workerd/process"
import { type Call, type Supervised, Supervisor } from "#server/platform/workerd/supervisor"
import type { FunctionProgram, FunctionState } from "../program.ts"
import type { FunctionLogLine, FunctionUsage } from "../control-plane.ts"
import { hasAlarms } from "./alarms.ts"
import { CallEnded, CallFailures } from "./call-end.ts"
import { CallTokens } from "./call-tokens.ts"
import type { Framing } from "./framing.ts"
import type { CallMetadata } from "./headers.ts"
import { DiskFailure, warm, writing } from "./disk.ts"
import type { HostContext } from "./host-context.ts"
import { type HostHandler, listenForBindings } from "./host-socket.ts"
import { compileInput, removeSockets, type Sockets, socketsOf, startWorkerd } from "./launch.ts"
import { LogBuffer } from "./log-buffer.ts"
import type { EnvironmentDirectories } from "./directories.ts"
import { hasStorage, isSame, withoutCode } from "./programs.ts"
import { ProcessAgent } from "./process-agent.ts"
import { makeSealKey, ProcessSeal, type SealedFacts, withSealKey } from "./process-seal.ts"
import { Reclaim } from "./reclaim.ts"
import { endMessages, Standing } from "./standing.ts"
import { postJson, type WorkerReply } from "./worker-http.ts"

/** Error: the environment has no code to run, or is suspended. */
export class NotLive extends Data.TaggedError("NotLive")<{
  readonly kind: "absent" | "suspended"
}> {}

/** Dependencies of a host on its environment. */
export interface HostOptions {
  readonly environmentId: string
  readonly load: () => Promise<FunctionState>
  readonly handle: HostHandler
  readonly onLogs: (lines: ReadonlyArray<FunctionLogLine>) => void
  readonly onUsage: (usage: FunctionUsage) => void
  /** Called when the process has exceeded a limit or crashed. */
  readonly onKill: () => void
  readonly onStart: (pid: number) => void
  /** Called when the process cannot start because the disk refuses writes. */
  readonly onDiskFailure: (failure: DiskFailure) => void
}

/** Process of an environment, with the sockets on which it listens. */
export class RunningFunction implements Supervised {
  readonly program: FunctionProgram
  readonly sockets: Sockets
  /**
   * Connections to the process. The process closes a connection after five idle seconds, so the agent
   * drops it earlier.
   */
  readonly agent = new ProcessAgent({
    keepAlive: true,
    maxSockets: functionRuntime.callsMax,
    timeout: functionRuntime.idleConnectionMillis
  })
  readonly seal: ProcessSeal
  readonly #process: WorkerdProcess

  constructor(
    process: WorkerdProcess,
    program: FunctionProgram,
    sockets: Sockets,
    seal: ProcessSeal
  ) {
    this.#process = process
    this.program = program
    this.sockets = sockets
    this.seal = seal
    void process.exited.then(() => this.agent.destroy())
  }

  get pid(): number {
    return this.#process.pid
  }

  get exited(): Promise<string> {
    return this.#process.exited
  }

  kill(): void {
    this.#process.kill()
  }
}

export type FunctionCall = Call<RunningFunction>

/** Configuration of a program. `sealKey` stands in it for the key of a process. */
interface Config {
  readonly program: FunctionProgram
  readonly bytes: Uint8Array
  readonly sealKey: string
}

export class FunctionHost {
  readonly supervisor: Supervisor<RunningFunction>
  readonly failures: CallFailures
  readonly #context: HostContext
  readonly #options: HostOptions
  readonly #logs = new LogBuffer()
  readonly #callKey = randomBytes(32)
  readonly #tokens = new CallTokens(this.#callKey, functionRuntime.passedResponseMillis)
  #usage = { requests: 0, cpuMillis: 0, bytes: 0 }
  #program: FunctionProgram | undefined
  #config: Config | undefined
  #server: Server | undefined
  /** Seal of the newest process. */
  #seal: ProcessSeal | undefined
  #notLive: { readonly kind: "absent" | "suspended"; readonly until: number } | undefined
  #starts = 0
  #diskFailedAt = -Infinity
  readonly standing: Standing
  readonly #reclaim: Reclaim

  constructor(context: HostContext, options: HostOptions) {
    this.#context = context
    this.#options = options
    this.failures = new CallFailures(context.now, (message) => this.#note("error", message))
    const { environmentId } = options
    this.standing = new Standing({
      environmentId,
      context,
      note: (level, message) => this.#note(level, message),
      onStop: () => this.#stopCode(),
      onResume: () => void this.reload().catch(context.onStorageFailure)
    })
    this.#reclaim = new Reclaim({ context, environmentId, host: this })
    const { budget, storage } = this.standing
    this.supervisor = new Supervisor<RunningFunction>({
      start: () => this.#start(),
      limits: () => ({
        cpuMillis: Math.min(this.#program?.limits.cpuMs ?? 0, context.cpuMillisMax),
        memoryBytes: context.memoryBytes
      }),
      usageOf: readUsage,
      budget,
      refusalOf: (kind) => this.standing.refusalOf(kind, this.supervisor.calls),
      onCheck: (pid) => storage.refresh(pid),
      now: context.now,
      onEnd: (reason) => {
        this.#note("error", endMessages[reason])
        // Calls are refused until the budget is repaid, which is enough.
        if (reason !== "budget") options.onKill()
      },
      onCpu: (cpuMillis) => {
        this.#usage.cpuMillis += cpuMillis
      },
      waitingMax: functionRuntime.callsWaiting,
      waitMillis: functionRuntime.callWaitMillis
    })
  }

  /** Running version, or the last one that ran. */
  get program(): FunctionProgram | undefined {
    return this.#program
  }

  /** Returns the running version. Starts its process if none runs. */
  async programNow(): Promise<FunctionProgram> {
    const call = await this.supervisor.enter("maintenance")
    call.end()
    return call.process.program
  }

  count(requests: number, bytes: number): void {
    this.#usage.requests += requests
    this.#usage.bytes += bytes
  }

  /** Sends collected logs and usage to the control plane. */
  flush(): void {
    const version = this.#program?.version ?? 0
    if (!this.#logs.isEmpty)
      this.#options.onLogs(this.#logs.take(version, this.#context.wallClock()))
    const { bytes, cpuMillis, requests } = this.#usage
    if (requests + cpuMillis + bytes === 0) return
    this.#options.onUsage(this.#usage)
    this.#usage = { requests: 0, cpuMillis: 0, bytes: 0 }
  }

  /** Measures what is stored if that may have changed, and notes when CPU time is used up. */
  watch(): void {
    this.standing.storage.refresh(this.supervisor.process?.pid)
    this.standing.noteThrottling()
    this.#reclaim.inTime()
  }

  /** Gives the space of deleted rows back, if the environment needs it. */
  reclaim(): void {
    this.#reclaim.start()
  }

  /** Ends the process of an environment that stores too much, and empties its cache. */
  #stopCode(): void {
    const { directories, onStorageFailure } = this.#context
    this.supervisor.end("storage")
    this.supervisor
      .exclusively(0, () => directories.emptyCache(this.#options.environmentId))
      .then(() => this.standing.storage.measure(undefined))
      .catch(onStorageFailure)
  }

  /** Whether a durable object has a pending alarm. */
  hasAlarms(): boolean {
    const isPossible = this.#program?.bindings.some(({ type }) => type === "durableObject") === true
    return isPossible && hasAlarms(this.#context.directories.dataOf(this.#options.environmentId))
  }

  /** Calls a handler other than `fetch`, with a JSON body. */
  call(kind: "scheduled" | "queue" | "hook" | "exports", body: unknown): Promise<WorkerReply> {
    return this.#post("main", kind, body)
  }

  /** Runs an operation of the administration worker. */
  administer(body: unknown): Promise<WorkerReply> {
    return this.#post("admin", "admin", body)
  }

  /** Returns what an entry point learns of each call. */
  #facts<K extends SealedFacts["kind"]>(kind: K) {
    const call = this.#tokens.next(this.#context.wallClock())
    return { kind, call, isFull: this.standing.isFull }
  }

  /** Returns the headers by which a process knows a client's call for the service's own. */
  fetchHeaders(
    { seal }: RunningFunction,
    { method, framing }: { readonly method: string; readonly framing: Framing },
    { clientAddress, playerId, url }: Omit<CallMetadata, "mount">
  ): Record<string, string> {
    const facts = { url, address: clientAddress, player: playerId }
    return seal.headersOf({ ...this.#facts("fetch"), method, framing, ...facts })
  }

  async #post(
    socket: "main" | "admin",
    kind: SealedFacts["kind"],
    body: unknown
  ): Promise<WorkerReply> {
    const call = await this.supervisor.enter(socket === "admin" ? "maintenance" : "call")
    const { agent, seal, sockets } = call.process
    const abort = new AbortController()
    let reason: CallEnded["reason"] | undefined
    const end = (why: CallEnded["reason"]): void => {
      reason ??= why
      abort.abort()
    }
    call.onProcessEnd(end)
    const deadline = setTimeout(() => end("late"), functionRuntime.responseMillis)
    try {
      return await postJson(
        { agent, socketPath: sockets[socket], seal, facts: this.#facts(kind) },
        body,
        abort.signal
      )
    } catch (error) {
      throw reason === undefined
        ? await this.failures.endOf(call, error)
        : new CallEnded({ reason })
    } finally {
      clearTimeout(deadline)
      call.end()
    }
  }

  #note(level: FunctionLogLine["level"], message: string): void {
    const at = this.#context.wallClock()
    this.#logs.write({ at, level, message, version: this.#program?.version ?? 0 })
  }

  async #start(): Promise<RunningFunction> {
    const { compiler } = this.#context
    if (this.#notLive !== undefined && this.#context.now() < this.#notLive.until) {
      throw new NotLive({ kind: this.#notLive.kind })
    }
    const state = await this.#options.load()
    if (state.kind !== "live") {
      this.#notLive = { kind: state.kind, until: this.#context.now() + notLiveMillis }
      throw new NotLive({ kind: state.kind })
    }
    // Lines about a failed start name the version.
    this.#program = state.program
    const directories = await this.#makeDirectories()
    await this.standing.storage.ensureMeasured()
    const program = this.standing.isStopped ? withoutCode(state.program) : state.program
    this.#program = program
    if (this.#config === undefined || !isSame(this.#config.program, program)) {
      const keys = { callKey: this.#callKey.toString("hex"), sealKey: makeSealKey() }
      const input = compileInput(program, directories, keys, this.#context)
      this.#config = { program, bytes: await compiler.compile(input), sealKey: keys.sealKey }
    }
    const releaseSlot = await this.#context.acquireStartSlot()
    try {
      return await this.#launch(program, directories, this.#config)
    } finally {
      releaseSlot()
    }
  }

  async #makeDirectories(): Promise<EnvironmentDirectories> {
    const { handle, environmentId, onDiskFailure } = this.#options
    try {
      const directories = await writing(() => this.#context.directories.of(environmentId))
      const hostSocket = join(directories.sockets, "host")
      this.#server ??= await listenForBindings(hostSocket, directories.uid, {
        handle,
        isAuthentic: (headers, call) => this.#seal?.accepts(headers, call) === true
      })
      return directories
    } catch (error) {
      const at = this.#context.now()
      if (error instanceof DiskFailure && at - this.#diskFailedAt >= diskNoteMillis) {
        this.#diskFailedAt = at
        this.#note("error", error.message)
        onDiskFailure(error)
      }
      throw error
    }
  }

  async #launch(
    program: FunctionProgram,
    directories: EnvironmentDirectories,
    { bytes, sealKey }: Config
  ) {
    this.#starts += 1
    const key = makeSealKey()
    const seal = new ProcessSeal(key, this.#context.wallClock)
    this.#seal = seal
    const config = withSealKey(bytes, sealKey, key)
    const sockets = socketsOf(directories, this.#starts)
    const process = await startWorkerd(this.#context, directories, config, sockets, {
      fileBytes: this.standing.fileBytes,
      startMillis: functionRuntime.restartMillis,
      startCpuMillis: functionRuntime.restartMillis,
      onLine: (line) => this.#logs.add(line, program.version, this.#context.wallClock())
    }).catch((error: unknown) => {
      if (error instanceof StartFailure) {
        this.standing.budget.charge(error.cpuMillis, this.#context.now())
      }
      throw error
    })
    this.#options.onStart(process.pid)
    const running = new RunningFunction(process, program, sockets, seal)
    void process.exited.then(() => removeSockets(sockets))
    // What fails here, as on a full disk, fails again in the call that needs it, and only there.
    const problem = hasStorage(program)
      ? await warm({ agent: running.agent, socketPath: sockets.admin, seal })
      : undefined
    if (problem !== undefined) this.#note("error", `Stored data cannot be opened: ${problem}`)
    return running
  }

  /** Drains calls in progress and ends the process. The next call starts the live version. */
  async reload(): Promise<void> {
    await this.supervisor.exclusively(functionRuntime.drainMillis, async () => {
      this.#notLive = undefined
    })
  }

  /** Reloads if the live version differs from the running one. Otherwise calls in progress continue. */
  async reloadIfChanged(): Promise<void> {
    this.#notLive = undefined
    if (!this.supervisor.isQuiet) return this.reload()
    const running = this.supervisor.process
    if (running === undefined) return
    const state = await this.#options.load()
    if (state.kind !== "live" || !isSame(state.program, running.program)) await this.reload()
  }

  /** Ends the process and the socket of the bindings. */
  async close(drainMillis: number): Promise<void> {
    await this.supervisor.stop(drainMillis)
    this.flush()
    this.#server?.close()
  }
}

/** Milliseconds for which a host caches that no version is live. */
const notLiveMillis = 1000

/** Minimum milliseconds between two log lines about the same full disk. */
const diskNoteMillis = 60_000
