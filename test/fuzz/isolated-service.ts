/**
 * Starts the service for a fuzz run. Its idle time is short: rooms, channels and sessions end seconds after
 * their last use instead of a minute, and the run waits for that after each round. Nobody listens where its
 * sign-in providers are, so no request leaves the machine.
 */
import { NodeRuntime } from "@effect/platform-node"
import { Layer } from "effect"
import { IdleMillis } from "#entities/idle-time"
import { ServiceLive } from "#server/app"
import { ProviderBaseUrls } from "#server/features/oauth/definitions"

const nowhere = "http://127.0.0.1:9"
const Isolated = ServiceLive.pipe(
  Layer.provide(Layer.succeed(IdleMillis, 2000)),
  Layer.provide(
    Layer.succeed(ProviderBaseUrls, {
      google: nowhere,
      discord: nowhere,
      apple: nowhere,
      x: nowhere
    })
  )
)
NodeRuntime.runMain(Layer.launch(Isolated))
