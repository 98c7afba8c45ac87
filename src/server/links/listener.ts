/** An anonymous connection, without a player: it joins channels that allow listeners, and listens. */
import { type Effect, Fiber } from "effect"
import type { CodedError } from "#rpc/errors/codes"
import type { EnvironmentId } from "#rpc/ids"
import { ChannelMemberships } from "./channel-memberships.ts"
import { warnFrame } from "./reply-frames.ts"
import type { ChannelHandle, ChannelSubscriber, FrameSink } from "./subscriber.ts"

export class Listener implements ChannelSubscriber {
  readonly connectionId: string
  readonly environmentId: EnvironmentId
  readonly player = undefined
  readonly channels = new ChannelMemberships<ChannelHandle>()
  readonly sink: Pick<FrameSink, "push">
  readonly #run: (effect: Effect.Effect<void>) => Fiber.Fiber<void>
  readonly #onClosed: () => void
  readonly #work = new Set<Fiber.Fiber<void>>()
  #closed = false

  constructor(options: {
    readonly connectionId: string
    readonly environmentId: EnvironmentId
    readonly sink: Pick<FrameSink, "push">
    readonly run: (effect: Effect.Effect<void>) => Fiber.Fiber<void>
    readonly onClosed: () => void
  }) {
    this.connectionId = options.connectionId
    this.environmentId = options.environmentId
    this.sink = options.sink
    this.#run = options.run
    this.#onClosed = options.onClosed
  }

  warn(error: CodedError): void {
    this.sink.push(warnFrame(error))
  }

  /** Runs work that ends with the connection. */
  start(effect: Effect.Effect<void>): void {
    if (this.#closed) return
    const fiber = this.#run(effect)
    if (fiber.pollUnsafe() !== undefined) return
    this.#work.add(fiber)
    fiber.addObserver(() => this.#work.delete(fiber))
  }

  /** The sink is closed. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#onClosed()
    for (const link of this.channels.removeAll()) link.disconnect(this)
    for (const fiber of this.#work) this.#run(Fiber.interrupt(fiber))
  }
}
