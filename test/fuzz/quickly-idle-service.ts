/**
 * Starts the service with a short idle time: rooms, channels and sessions end seconds after their last use
 * instead of a minute, and the fuzz run waits for that after each round.
 */
import { NodeRuntime } from "@effect/platform-node"
import { Layer } from "effect"
import { IdleMillis } from "#entities/idle-time"
import { ServiceLive } from "#server/app"

const QuicklyIdle = ServiceLive.pipe(Layer.provide(Layer.succeed(IdleMillis, 2000)))
NodeRuntime.runMain(Layer.launch(QuicklyIdle))
