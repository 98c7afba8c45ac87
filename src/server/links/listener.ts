/** An anonymous connection, without a player: it joins channels that allow listeners, and listens. */
import type { Effect } from "effect"
import type { CodedError } from "#rpc/errors/codes"
import type { EnvironmentId } from "#rpc/ids"
import { ChannelMemberships } from "./channel-memberships.ts"
import { ConnectionWork, type RunFork } from "./connection-work.ts"
import { warnFrame } from "./reply-frames.ts"
import type { ChannelHandle, ChannelSubscriber, FrameSink } from "./subscriber.ts"

export class Listener implements ChannelSubscriber {
  readonly connectionId: string
  readonly environmentId: EnvironmentId
  readonly player = undefined
  readonly channels = new ChannelMemberships<ChannelHandle>()
  readonly sink: Pick<FrameSink, "push">
  readonly #onClosed: () => void
  readonly #work: ConnectionWork
  #closed = false

  constructor(options: {
    readonly connectionId: string
    readonly environmentId: EnvironmentId
    readonly sink: Pick<FrameSink, "push">
    readonly run: RunFork
    readonly onClosed: () => void
  }) {
    this.connectionId = options.connectionId
    this.environmentId = options.environmentId
    this.sink = options.sink
    this.#work = new ConnectionWork(options.run)
    this.#onClosed = options.onClosed
  }

  warn(error: CodedError): void {
    this.sink.push(warnFrame(error))
  }

  /** Runs work that ends with the connection. */
  start(effect: Effect.Effect<void>): void {
    if (!this.#closed) this.#work.start(effect)
  }

  /** Closes the listener after its sink. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#onClosed()
    for (const link of this.channels.removeAll()) link.disconnect(this, "lost")
    this.#work.interrupt()
  }
}
