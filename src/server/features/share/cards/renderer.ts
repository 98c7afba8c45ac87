/**
 * Draws cards in a process of its own, which a fault of the renderer, a hostile font or a hostile picture
 * cannot leave. One card at a time; environments take turns. A process that takes too long, grows too
 * large or dies is replaced.
 */
import { type ChildProcess, fork } from "node:child_process"
import { fileURLToPath } from "node:url"
import { Data, Effect } from "effect"
import { Unavailable } from "#rpc/errors/codes"
import { shareCards as bounds } from "#rpc/limits"
import { FairSemaphore } from "#server/platform/fair-semaphore"
import type { DrawReply, DrawRequest } from "./process.ts"

export type Drawing = Omit<DrawRequest, "id">

/** The card could not be drawn: a broken font or picture, or a fault of the renderer. */
export class DrawFault extends Data.TaggedError("DrawFault")<{ readonly problem: string }> {}

const program = fileURLToPath(new URL("process.ts", import.meta.url))

const start = (): ChildProcess => {
  const child = fork(program, [], {
    serialization: "advanced",
    env: {},
    execArgv: ["--max-old-space-size=256"],
    stdio: ["ignore", "ignore", "ignore", "ipc"]
  })
  // It ends with the service, and must not keep it running.
  child.unref()
  child.channel?.unref()
  return child
}

/** The process, started when it is first needed. */
class Drawer {
  #child: ChildProcess | undefined
  #lastId = 0

  stop(): void {
    this.#child?.kill("SIGKILL")
    this.#child = undefined
  }

  /** Draws one card; the caller waits for it before the next. */
  draw(drawing: Drawing): Effect.Effect<Uint8Array, DrawFault> {
    return Effect.callback<Uint8Array, DrawFault>((resume) => {
      const child = (this.#child ??= start())
      const id = ++this.#lastId
      const fail = (problem: string) => resume(Effect.fail(new DrawFault({ problem })))
      const onMessage = (reply: DrawReply) => {
        if (reply.id !== id) return
        release()
        if ("png" in reply) resume(Effect.succeed(reply.png))
        else fail(reply.problem)
      }
      const onEnd = () => {
        release()
        this.#child = undefined
        fail("the drawing process ended")
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
    }).pipe(
      Effect.timeoutOrElse({
        duration: bounds.drawMillis,
        orElse: () => Effect.fail(new DrawFault({ problem: "drawing took too long" }))
      })
    )
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
    waitingPerKey: bounds.waitingPerEnvironment,
    waitMillis: bounds.waitMillis,
    refuse: Effect.fail(new Unavailable())
  })
  return (environmentId: string, drawing: Drawing) =>
    turns.withPermit(environmentId)(drawer.draw(drawing))
})
