/**
 * Connections between runners. A connection carries text frames, whole and in order, until it closes.
 * The runner links are built on it; the simulation provides an in-memory transport.
 */
import { Context } from "effect"
import type { RunnerAddress } from "effect/cluster"

/** The local end of a connection. */
export interface RunnerConnection {
  /** Sends a frame, without a guarantee that it arrives. A peer that does not read is disconnected. */
  readonly send: (frame: string) => void
  /** Closes the connection after the frames sent so far. */
  readonly close: (why: string) => void
}

/** Events of the local end. */
export interface RunnerConnectionEvents {
  readonly received: (frame: string) => void
  /** Runs once, whichever side closed the connection, also when it could not be opened. */
  readonly ended: (why: string) => void
}

export class RunnerTransport extends Context.Service<
  RunnerTransport,
  {
    /** Opens a connection to a runner; frames sent before it is established wait. */
    readonly open: (
      to: RunnerAddress.RunnerAddress,
      events: RunnerConnectionEvents
    ) => RunnerConnection
    /** Sets the handler of incoming connections. */
    readonly accept: (accepted: (connection: RunnerConnection) => RunnerConnectionEvents) => void
  }
>()("server/cluster/runner-transport/RunnerTransport") {}
