/** Media process from the view of its runner: its messages, its calls and its end. */
import { type ChildProcess, fork } from "node:child_process"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { InvalidFrame, VoiceUnavailable } from "#rpc/errors/codes"
import type { MediaCall, MediaCandidate, MediaListener } from "#entities/voice-session/media"
import { FairShares } from "#server/platform/fair-semaphore"
import { mediaLimits } from "./media-limits.ts"
import type { MediaOptions, MediaReport, MediaRequest } from "./media-messages.ts"

type Answer = Effect.Effect<ReadonlyArray<MediaCandidate>, InvalidFrame | VoiceUnavailable>

const entry = fileURLToPath(new URL("./media-process.ts", import.meta.url))

/** Call of a process, without a bound on joins. */
export type WorkerCall = Omit<MediaCall, "reserve">

interface WaitingAnswer {
  readonly environmentId: string
  readonly resume: (answer: Answer) => void
}

export class MediaWorker {
  readonly #child: ChildProcess
  readonly #onLog: (level: string, message: string) => void
  readonly #onConnected: (session: string) => void
  readonly #calls = new Map<number, MediaListener>()
  readonly #answers = new Map<number, WaitingAnswer>()
  /**
   * Places for answers of the process. All its calls wait in one queue, where one environment must not
   * take all places.
   */
  readonly #places = new FairShares<never>({ ...mediaLimits.waitingAnswers, waitingPerKey: 0 })
  readonly #onReady = new Set<(isReady: boolean) => void>()
  #state: "starting" | "ready" | "ended" = "starting"
  #count = 0
  #joins = 0
  /** Resident memory of the process in bytes. */
  #residentBytes = 0
  /** Checks since the last message. */
  #silentChecks = 0
  /** Packets that the process sent in the last second, by environment. */
  #forwards: Readonly<Record<string, number>> = {}

  constructor(
    events: {
      readonly onLog: (level: string, message: string) => void
      readonly onConnected: (session: string) => void
      readonly onEnd: (wasReady: boolean) => void
    },
    /** Program of the process. Benchmarks compare others. */
    program = entry
  ) {
    this.#onLog = events.onLog
    this.#onConnected = events.onConnected
    this.#child = fork(program, [], {
      env: {},
      execArgv: [],
      stdio: ["ignore", "ignore", "ignore", "ipc"]
    })
    this.#child.on("message", (message: MediaReport) => this.#receive(message))
    const ended = () => {
      if (this.#state === "ended") return
      const wasReady = this.#state === "ready"
      this.#state = "ended"
      // First of all another one takes its place: members may join again at once.
      events.onEnd(wasReady)
      this.#end()
    }
    this.#child.on("error", (error) => {
      this.#onLog("Fatal", error.message)
      ended()
    })
    this.#child.once("exit", ended)
  }

  get isReady(): boolean {
    return this.#state === "ready"
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  /** Whether the process is empty and has grown, so that the pool should replace it. */
  get needsReplacement(): boolean {
    const hasGrown =
      this.#joins >= mediaLimits.joinsPerProcess ||
      this.#residentBytes >= mediaLimits.processReplacedBytes
    return this.#calls.size === 0 && hasGrown
  }

  /** Packets that the process sent in the last second. */
  get forwards(): number {
    return Object.values(this.#forwards).reduce((sum, packets) => sum + packets, 0)
  }

  /**
   * Whether the process takes no new call of an environment. Always accepts an environment that sends
   * little.
   */
  isBusyFor(environmentId: string): boolean {
    if (this.forwards < mediaLimits.forwardsPerSecond) return false
    const own = this.#forwards[environmentId] ?? 0
    return own * (mediaLimits.processPackets.share + 1) >= this.forwards
  }

  /** Waits until the process serves; fails if it ends earlier. */
  readonly ready: Effect.Effect<void, VoiceUnavailable> = Effect.callback((resume) => {
    const settle = (isReady: boolean) =>
      resume(isReady ? Effect.void : Effect.fail(new VoiceUnavailable()))
    if (this.#state !== "starting") return settle(this.#state === "ready")
    this.#onReady.add(settle)
    return Effect.sync(() => this.#onReady.delete(settle))
  })

  /** Starts serving. A process that waits for its port is ready at once. */
  bind(options: MediaOptions): this {
    this.#send({ t: "bind", ...options })
    return this
  }

  start(listener: MediaListener, environmentId: string): WorkerCall {
    const call = ++this.#count
    if (this.#state === "ended") queueMicrotask(() => listener.lost())
    else this.#calls.set(call, listener)
    return {
      open: (session) => {
        this.#joins += 1
        this.#send({ t: "open", call, environmentId, session })
      },
      answer: (session, gen, sdp) => this.#answer({ call, session, gen, sdp }, environmentId),
      setMicrophone: (session, open) => this.#send({ t: "microphone", call, session, open }),
      hint: (session, speaking) => {
        if (speaking) this.#send({ t: "hint", call, session })
      },
      close: (session) => this.#send({ t: "close", call, session }),
      end: () => {
        if (this.#calls.delete(call)) this.#send({ t: "end", call })
      }
    }
  }

  stop(): void {
    this.#child.kill("SIGKILL")
  }

  /**
   * Checks the process; the caller runs this once a second. Returns why the process must end: it hangs,
   * or holds too much memory while its calls continue. Returns undefined for a healthy one. A pause of
   * the whole machine counts as one check.
   */
  check(): string | undefined {
    if (this.#state === "ended") return undefined
    this.#silentChecks += 1
    if (this.#silentChecks > mediaLimits.processSilentSeconds) return "it does not answer"
    return this.#residentBytes >= mediaLimits.processMaxBytes
      ? "it holds too much memory"
      : undefined
  }

  #answer(
    answer: { readonly call: number; session: string; gen: number; sdp: string },
    environmentId: string
  ): Answer {
    return Effect.callback((resume) => {
      if (this.#state !== "ready" || !this.#places.take(environmentId)) {
        return resume(Effect.fail(new VoiceUnavailable()))
      }
      const id = ++this.#count
      this.#answers.set(id, { environmentId, resume })
      this.#send({ t: "answer", id, ...answer })
      return Effect.sync(() => void this.#takeAnswer(id))
    })
  }

  /** Removes an answer from the waiting ones. */
  #takeAnswer(id: number): WaitingAnswer | undefined {
    const waiting = this.#answers.get(id)
    if (waiting === undefined) return undefined
    this.#answers.delete(id)
    this.#places.release(waiting.environmentId)
    return waiting
  }

  #send(request: MediaRequest): void {
    if (this.#child.connected) this.#child.send(request, () => undefined)
  }

  #receive(report: MediaReport): void {
    this.#silentChecks = 0
    switch (report.t) {
      case "ready":
        this.#state = "ready"
        return this.#settleReady(true)
      case "log":
        return this.#onLog(report.level, report.message)
      case "offered": {
        const { call, gen, publishMid, sdp, session, slots } = report
        return this.#calls.get(call)?.offered({ session, gen, sdp, publishMid, slots })
      }
      case "connected":
        return this.#onConnected(report.session)
      case "answered":
        return this.#settleAnswer(report.id, Effect.succeed(report.candidates))
      case "refused": {
        const message = `Failed to use the answer: ${report.message.slice(0, 200)}`
        return this.#settleAnswer(report.id, Effect.fail(InvalidFrame.at("sdp", message)))
      }
      case "speaking":
        return this.#calls.get(report.call)?.speaking(report.slots)
      case "failed":
        return this.#calls.get(report.call)?.failed(report.session)
      case "load":
        this.#forwards = report.forwards
        this.#residentBytes = report.residentBytes
    }
  }

  #settleReady(isReady: boolean): void {
    for (const settle of this.#onReady) settle(isReady)
    this.#onReady.clear()
  }

  #settleAnswer(id: number, answer: Answer): void {
    this.#takeAnswer(id)?.resume(answer)
  }

  #end(): void {
    this.#settleReady(false)
    for (const id of Array.from(this.#answers.keys())) {
      this.#settleAnswer(id, Effect.fail(new VoiceUnavailable()))
    }
    const listeners = Array.from(this.#calls.values())
    this.#calls.clear()
    for (const listener of listeners) listener.lost()
  }
}
