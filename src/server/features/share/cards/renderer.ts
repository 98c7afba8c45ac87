/**
 * Draws cards in a separate process, which contains faults of the renderer, hostile fonts and hostile
 * pictures. The process draws one card at a time, and environments take turns. The service replaces a
 * process that takes too long, grows too large or dies. An environment that has used more than its time
 * waits while others draw.
 */
import { type ChildProcess, fork } from "node:child_process"
import { fileURLToPath } from "node:url"
import { Clock, Data, Effect } from "effect"
import { Unavailable } from "#rpc/errors/codes"
import { shareCards } from "#rpc/share/limits"
import { FairSemaphore } from "#server/platform/fair-semaphore"
import { readUsage } from "#server/platform/process-usage"
import { DrawBudget } from "./draw-budget.ts"
import type { DrawReply, DrawRequest } from "./process.ts"

export type Drawing = Omit<DrawRequest, "id">

/**
 * Error: the card could not be drawn. The renderer refused a font or picture, the process ended, or the
 * drawing took too long.
 */
export class DrawFault extends Data.TaggedError("DrawFault")<{
  readonly kind: "refused" | "gone" | "slow"
  readonly problem: string
}> {}

const program = fileURLToPath(new URL("process.ts", import.meta.url))

const start = (): ChildProcess => {
  const child = fork(program, [], {
    serialization: "advanced",
    env: {},
    execArgv: ["--max-old-space-size=256"],
    stdio: ["ignore", "ignore", "ignore", "ipc"]
  })
  // Those who draw hear of its end. An error that comes when nobody draws must not end the service.
  child.on("error", () => undefined)
  // It ends with the service, and must not keep it running.
  child.unref()
  child.channel?.unref()
  return child
}

const usageCheckMillis = 500

/**
 * Ends when a drawing has used up its time. It counts CPU time: the process has the lowest priority, so
 * on a busy machine it may start seconds later. Without a CPU time from the system, it counts real
 * time.
 */
const overdue = Effect.fnUntraced(function* (pid: () => number | undefined, maxMillis: number) {
  const cpuMillis = () => readUsage(pid() ?? 0)?.cpuMillis
  const before = cpuMillis()
  let waited = 0
  let used = 0
  while (used < shareCards.drawCpuMillis && waited < maxMillis) {
    yield* Effect.sleep(usageCheckMillis)
    waited += usageCheckMillis
    const now = cpuMillis()
    used = before === undefined || now === undefined ? waited : now - before
  }
  return yield* new DrawFault({ kind: "slow", problem: "drawing took too long" })
})

/** Drawing process. The first card starts it. */
class Drawer {
  #child: ChildProcess | undefined
  #lastId = 0

  /** Returns the process. Replaces one that died since the last card. */
  #running(): ChildProcess {
    if (this.#child?.connected !== true) this.#child = start()
    return this.#child
  }

  stop(): void {
    this.#child?.kill("SIGKILL")
    this.#child = undefined
  }

  /** Draws one card. The caller must wait for it before the next. */
  draw(drawing: Drawing): Effect.Effect<Uint8Array, DrawFault> {
    const isOwn = drawing.background !== undefined || drawing.font !== undefined
    return Effect.raceFirst(
      this.#drawn(drawing),
      overdue(
        () => this.#child?.pid,
        isOwn ? shareCards.ownDrawMaxMillis : shareCards.drawMaxMillis
      )
    )
  }

  /** CPU time of the process so far; undefined if there is none, or the system does not say. */
  get cpuMillis(): number | undefined {
    return this.#child?.pid === undefined ? undefined : readUsage(this.#child.pid)?.cpuMillis
  }

  #drawn(drawing: Drawing): Effect.Effect<Uint8Array, DrawFault> {
    return Effect.callback<Uint8Array, DrawFault>((resume) => {
      const child = this.#running()
      const id = ++this.#lastId
      const fail = (kind: DrawFault["kind"], problem: string) =>
        resume(Effect.fail(new DrawFault({ kind, problem })))
      const onMessage = (reply: DrawReply) => {
        if (reply.id !== id) return
        release()
        if ("png" in reply) resume(Effect.succeed(reply.png))
        else fail("refused", reply.problem)
      }
      const onEnd = () => {
        release()
        this.#child = undefined
        fail("gone", "the drawing process ended")
      }
      const release = () => {
        child.off("message", onMessage).off("exit", onEnd).off("error", onEnd)
        child.channel?.unref()
      }
      child.on("message", onMessage).on("exit", onEnd).on("error", onEnd)
      child.send({ id, ...drawing } satisfies DrawRequest)
      return Effect.sync(() => {
        release()
        this.stop()
      })
    })
  }
}

/** Draws cards, for as long as the scope is open. */
export const makeRenderer = Effect.gen(function* () {
  const drawer = yield* Effect.acquireRelease(
    Effect.sync(() => new Drawer()),
    (it) => Effect.sync(() => it.stop())
  )
  const turns = new FairSemaphore<Unavailable>({
    permits: 1,
    waitingPerKey: shareCards.waitingPerEnvironment,
    waitMillis: shareCards.waitMillis,
    refuse: Effect.fail(new Unavailable())
  })
  const budget = new DrawBudget()
  const now = Effect.map(Clock.Clock, (clock) => clock.currentTimeMillisUnsafe())
  const booked = Effect.fnUntraced(function* (environmentId: string, drawing: Drawing) {
    const startedAt = yield* now
    const before = drawer.cpuMillis
    // Who killed the process may have meant another card: a new one gets a second try.
    const drawn = Effect.retry(drawer.draw(drawing), {
      times: 1,
      while: ({ kind }) => kind === "gone"
    })
    return yield* Effect.ensuring(
      drawn,
      Effect.map(now, (endedAt) => {
        const after = drawer.cpuMillis
        const isSame = before !== undefined && after !== undefined && after >= before
        budget.use(environmentId, isSame ? after - before : endedAt - startedAt, endedAt)
      })
    )
  })
  return Effect.fnUntraced(function* (environmentId: string, drawing: Drawing) {
    if (!budget.isOpen(environmentId, yield* now)) return yield* new Unavailable()
    return yield* turns.withPermit(environmentId)(booked(environmentId, drawing))
  })
})
