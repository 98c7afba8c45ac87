/** Logs, traces and metrics. */
import { Layer } from "effect"
import { LogsLive } from "./logs.ts"
import { RegistryLive } from "./metrics.ts"
import { TracesLive } from "./traces.ts"

/** Layer that every other layer gets. */
export const ObservabilityLive = Layer.mergeAll(LogsLive, RegistryLive, TracesLive)
