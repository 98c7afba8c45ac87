/**
 * Interfaces of the control plane for the functions runtime: code to run, and destinations of logs and
 * usage.
 */
import { Context, type Effect } from "effect"
import type { EnvironmentId } from "#rpc/ids"
import type { FunctionState, StoredResource } from "./program.ts"
import type { QueueContentType } from "./stored-data.ts"

/** Loads the code and settings of an environment. */
export class FunctionsSource extends Context.Service<
  FunctionsSource,
  {
    /** Returns the current state. The runtime loads it at each start and after each change. */
    readonly load: (environmentId: EnvironmentId) => Effect.Effect<FunctionState>
    /** Lists what an environment may have stored data in. */
    readonly resources: (
      environmentId: EnvironmentId
    ) => Effect.Effect<ReadonlyArray<StoredResource>>
    /** Suspends the environment with the reason `abuse` until the operator lifts it. */
    readonly suspend: (environmentId: EnvironmentId) => Effect.Effect<void>
  }
>()("server/features/functions/control-plane/FunctionsSource") {}

/** Log line of a function, or of the runtime about it. */
export interface FunctionLogLine {
  /** Milliseconds since 1970. */
  readonly at: number
  readonly level: "debug" | "info" | "warn" | "error"
  /** Text of the line, at most `functions.logLineBytes`. */
  readonly message: string
  readonly version: number
}

/** Stores log lines. The runtime bounds the number of lines per second. */
export class FunctionsLogs extends Context.Service<
  FunctionsLogs,
  {
    readonly append: (
      environmentId: EnvironmentId,
      lines: ReadonlyArray<FunctionLogLine>
    ) => Effect.Effect<void>
  }
>()("server/features/functions/control-plane/FunctionsLogs") {}

/** Usage of an environment since the last report. */
export interface FunctionUsage {
  readonly requests: number
  readonly cpuMillis: number
  /** Bytes of requests and responses. */
  readonly bytes: number
}

/** Meters usage. The runtime reports every few seconds and at its stop. */
export class FunctionsUsage extends Context.Service<
  FunctionsUsage,
  {
    readonly add: (environmentId: EnvironmentId, usage: FunctionUsage) => Effect.Effect<void>
  }
>()("server/features/functions/control-plane/FunctionsUsage") {}

/** Call of the `svc` binding: a path of the server API below `/v1/admin`, with query and body. */
export interface ServerCall {
  readonly method: string
  readonly path: string
  readonly body: Uint8Array
}

export interface ServerReply {
  readonly status: number
  readonly body: Uint8Array
}

/**
 * Answers the `svc` binding with the server API of the environment, with the rights of its secret key.
 */
export class FunctionsServerApi extends Context.Service<
  FunctionsServerApi,
  {
    readonly call: (environmentId: EnvironmentId, call: ServerCall) => Effect.Effect<ServerReply>
  }
>()("server/features/functions/control-plane/FunctionsServerApi") {}

/** Message that a function sends. */
export interface NewMessage {
  readonly contentType: QueueContentType
  readonly body: Uint8Array
  readonly delaySeconds: number
}

/**
 * Stores the messages of queues. `FunctionsRuntime.deliver` delivers each at least once. `full` means
 * that the queues of the environment have no room and that the call stored nothing.
 */
export class FunctionsQueues extends Context.Service<
  FunctionsQueues,
  {
    readonly send: (
      environmentId: EnvironmentId,
      queue: string,
      messages: ReadonlyArray<NewMessage>
    ) => Effect.Effect<"stored" | "full">
    /** Counts the waiting messages of each queue. */
    readonly waiting: (environmentId: EnvironmentId) => Effect.Effect<ReadonlyMap<string, number>>
    /** Removes all messages of an environment. */
    readonly clear: (environmentId: EnvironmentId) => Effect.Effect<void>
  }
>()("server/features/functions/control-plane/FunctionsQueues") {}
