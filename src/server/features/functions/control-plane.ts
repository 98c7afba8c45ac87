/** What the runtime of functions needs of the control plane: what to run, and where logs and usage go. */
import { Context, type Effect } from "effect"
import type { EnvironmentId } from "#rpc/ids"
import type { FunctionState } from "./program.ts"

/** Loads what an environment runs. */
export class FunctionsSource extends Context.Service<
  FunctionsSource,
  {
    /** The state now; the runtime reads it at each start and after each change. */
    readonly load: (environmentId: EnvironmentId) => Effect.Effect<FunctionState>
    /** Suspends the environment with the reason `abuse` until the operator lifts it. */
    readonly suspend: (environmentId: EnvironmentId) => Effect.Effect<void>
  }
>()("server/features/functions/control-plane/FunctionsSource") {}

/** A line that a function has written, or that the runtime wrote about it. */
export interface FunctionLogLine {
  /** Milliseconds since 1970. */
  readonly at: number
  readonly level: "debug" | "info" | "warn" | "error"
  /** At most `functions.logLineBytes`. */
  readonly message: string
  readonly version: number
}

/** Keeps log lines. The runtime bounds how many it hands over in a second. */
export class FunctionsLogs extends Context.Service<
  FunctionsLogs,
  {
    readonly append: (
      environmentId: EnvironmentId,
      lines: ReadonlyArray<FunctionLogLine>
    ) => Effect.Effect<void>
  }
>()("server/features/functions/control-plane/FunctionsLogs") {}

/** What an environment has used since the last report. */
export interface FunctionUsage {
  readonly requests: number
  readonly cpuMillis: number
  /** Bytes of requests and responses. */
  readonly bytes: number
}

/** Meters usage; the runtime reports every few seconds, and when it stops. */
export class FunctionsUsage extends Context.Service<
  FunctionsUsage,
  {
    readonly add: (environmentId: EnvironmentId, usage: FunctionUsage) => Effect.Effect<void>
  }
>()("server/features/functions/control-plane/FunctionsUsage") {}

/** A call of the `svc` binding: a path of the server API below `/v1/admin`, and what it carries. */
export interface ServerCall {
  readonly method: string
  readonly path: string
  readonly body: Uint8Array
}

export interface ServerReply {
  readonly status: number
  readonly body: Uint8Array
}

/** Answers the `svc` binding with the server API of the environment, as its secret key would. */
export class FunctionsServerApi extends Context.Service<
  FunctionsServerApi,
  {
    readonly call: (environmentId: EnvironmentId, call: ServerCall) => Effect.Effect<ServerReply>
  }
>()("server/features/functions/control-plane/FunctionsServerApi") {}

/** How the body of a message is encoded, as in Cloudflare's queues. */
export type QueueContentType = "json" | "text" | "bytes" | "v8"

/** A message that a function sends. */
export interface NewMessage {
  readonly contentType: QueueContentType
  readonly body: Uint8Array
  readonly delaySeconds: number
}

/**
 * Stores the messages of queues. Messages are delivered at least once, by `FunctionsRuntime.deliver`.
 * `full`: the queues of the environment have no room; nothing is stored.
 */
export class FunctionsQueues extends Context.Service<
  FunctionsQueues,
  {
    readonly send: (
      environmentId: EnvironmentId,
      queue: string,
      messages: ReadonlyArray<NewMessage>
    ) => Effect.Effect<"stored" | "full">
    /** Messages of each queue that wait. */
    readonly waiting: (environmentId: EnvironmentId) => Effect.Effect<ReadonlyMap<string, number>>
    /** Removes all messages of an environment. */
    readonly clear: (environmentId: EnvironmentId) => Effect.Effect<void>
  }
>()("server/features/functions/control-plane/FunctionsQueues") {}
