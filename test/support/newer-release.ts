/** Starts the service as a later release would, whose runners speak a cluster protocol of their own. */
import { NodeRuntime } from "@effect/platform-node"
import { Layer } from "effect"
import { ServiceLive } from "#server/app"
import { clusterProtocolVersion } from "#server/cluster/handshake"
import { RunnerRelease } from "#server/cluster/runner-versions"

/** The release that it claims to be. */
export const newerRelease = { protocol: clusterProtocolVersion + 1, release: "99.0.0" }

if (process.argv[1] === import.meta.filename) {
  const Newer = ServiceLive.pipe(Layer.provide(Layer.succeed(RunnerRelease, newerRelease)))
  NodeRuntime.runMain(Layer.launch(Newer))
}
