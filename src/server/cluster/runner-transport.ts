/**
 * A wire: a connection from one runner to another that carries frames of text, whole and in order,
 * until it ends. The lines are built on it; a simulation has wires of its own.
 */
import { Context } from "effect"
import type { RunnerAddress } from "effect/cluster"

/** One's own end. */
export interface RunnerConnection {
  /** A wire whose other end does not take what is sent ends; what was sent may not have arrived. */
  readonly send: (frame: string) => void
  /** Ends the wire, after what was sent. */
  readonly close: (why: string) => void
}

/** What happens at one's own end. */
export interface RunnerConnectionEvents {
  readonly received: (frame: string) => void
  /** Once, whoever ended it and whether or not it ever stood. */
  readonly ended: (why: string) => void
}

export class RunnerTransport extends Context.Service<
  RunnerTransport,
  {
    /** A wire to a runner; what is sent before it stands waits. */
    readonly open: (
      to: RunnerAddress.RunnerAddress,
      events: RunnerConnectionEvents
    ) => RunnerConnection
    /** Takes the wires that other runners open from now on. */
    readonly accept: (accepted: (wire: RunnerConnection) => RunnerConnectionEvents) => void
  }
>()("server/cluster/runner-transport/Wires") {}
