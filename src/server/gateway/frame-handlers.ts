/** The handlers of all player frames, the same for WebSockets and native RPC. */
import { Clock, Context, Effect, Layer } from "effect"
import { ClientFrames } from "#rpc/realtime"
import { replyWith } from "#server/links/frame-effects"
import type { FrameHandlers } from "#server/links/frame-handler"

/** Makes the handlers of a feature's frames. */
type MakeFrames<R> = (services: Context.Context<R>, now: () => number) => Partial<FrameHandlers>

export class Frames extends Context.Service<Frames, FrameHandlers>()(
  "server/gateway/frame-handlers/Frames"
) {
  /** Serves what the features handle, and `ping`. */
  static readonly layer = <R>(features: ReadonlyArray<MakeFrames<R>>) =>
    Layer.effect(
      Frames,
      Effect.gen(function* () {
        const services = yield* Effect.context<R>()
        const clock = yield* Clock.Clock
        const now = () => clock.currentTimeMillisUnsafe()
        const ping = replyWith(services)("ping", () =>
          Effect.map(Clock.currentTimeMillis, (at) => ({ at }))
        )
        const handlers = Object.assign({ ping }, ...features.map((make) => make(services, now)))
        const missing = [...ClientFrames.requests.keys()].filter((t) => !(t in handlers))
        if (missing.length > 0) return yield* Effect.die(`No feature handles ${missing.join(", ")}`)
        return Frames.of(handlers)
      })
    )
}
