/** What operators see of the service: its logs, its traces, its metrics. */
import { Layer } from "effect"
import { LogsLive } from "./logs.ts"
import { RegistryLive } from "./metrics.ts"
import { TracesLive } from "./traces.ts"

/** What everything else is built upon. */
export const ObservabilityLive = Layer.mergeAll(LogsLive, RegistryLive, TracesLive)
