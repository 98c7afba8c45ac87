/** Layers of Functions: the runtime, its dependencies and its callers. */
import { Layer } from "effect"
import { DeadLetterRepository } from "#sql/functions/dead-letters"
import { DeliveryRepository } from "#sql/functions/deliveries"
import { FunctionsDeploymentRepository } from "#sql/functions/deployments"
import { FunctionHostRepository } from "#sql/functions/hosts"
import { FunctionsRecordRepository } from "#sql/functions/records"
import { FunctionsRepository } from "#sql/functions/settings"
import { SnapshotRepository } from "#sql/functions/snapshots"
import { FunctionsBalance } from "./balance.ts"
import { FunctionsChanges } from "./changes.ts"
import { FunctionsCrons } from "./crons.ts"
import { FunctionsDeliveries, FunctionsQueuesLive, NewDeliveries } from "./deliveries.ts"
import { FunctionHosts } from "./host/local.ts"
import { FunctionsRuntimeLive } from "./distributed-runtime.ts"
import { FunctionsLogsLive } from "./logs.ts"
import { FunctionPlacement } from "./runners/placement.ts"
import { FunctionRoutes } from "./runners/routes.ts"
import { FunctionsServerApiLive } from "./server-api.ts"
import { FunctionSnapshots } from "./snapshots.ts"
import { FunctionsSourceLive } from "./source.ts"
import { FunctionsUsageLive } from "./usage.ts"

export const FunctionRepositoriesLive = Layer.mergeAll(
  DeadLetterRepository.layer,
  DeliveryRepository.layer,
  FunctionHostRepository.layer,
  FunctionsDeploymentRepository.layer,
  FunctionsRecordRepository.layer,
  FunctionsRepository.layer,
  SnapshotRepository.layer
)

/** Code, logs, usage, queues and the server API, for the runtime. */
export const FunctionControlPlaneLive = Layer.mergeAll(
  FunctionsLogsLive,
  FunctionsQueuesLive,
  FunctionsServerApiLive,
  FunctionsSourceLive,
  FunctionsUsageLive
).pipe(Layer.provideMerge(NewDeliveries.layer))

/** Routes of calls to the runner that hosts an environment. */
export const FunctionRoutesLive = FunctionRoutes.layer.pipe(
  Layer.provideMerge(FunctionPlacement.layer)
)

/** Runtime of functions, and the subscription to its changes. */
export const FunctionsLive = FunctionsChanges.layer.pipe(
  Layer.provideMerge(FunctionsRuntimeLive),
  Layer.provideMerge(FunctionRoutesLive),
  Layer.provideMerge(FunctionSnapshots.layer),
  Layer.provideMerge(FunctionHosts.layer),
  Layer.provideMerge(FunctionControlPlaneLive)
)

/** Callers of functions: crons, queue messages and events. It also suspends projects that owe money. */
export const FunctionCallersLive = Layer.mergeAll(
  FunctionsBalance,
  FunctionsCrons,
  FunctionsDeliveries
)
