/**
 * A connection without a player (spec section 4.5): it comes into channels that the server has opened
 * to everyone, and listens.
 */
import { type Effect, Fiber } from "effect"
import { type CodedError, toWire } from "#rpc/errors/codes"
import type { EnvironmentId } from "#rpc/ids"
import type { Warn } from "#rpc/realtime"
import { Frame } from "#server/platform/outbox"
import type { ChannelSeat, ChannelSubscriber } from "./channel-link.ts"

export class Listener implements ChannelSubscriber {
  readonly connectionId: string
  readonly environmentId: EnvironmentId
  readonly player = undefined
  readonly channels = new Map<string, ChannelSeat>()
  readonly #door: { readonly push: (frame: Frame) => void }
  readonly #run: (effect: Effect.Effect<void>) => Fiber.Fiber<void>
  readonly #whenClosed: () => void
  readonly #work = new Set<Fiber.Fiber<void>>()
  #closed = false

  constructor(options: {
    readonly connectionId: string
    readonly environmentId: EnvironmentId
    readonly door: { readonly push: (frame: Frame) => void }
    readonly run: (effect: Effect.Effect<void>) => Fiber.Fiber<void>
    readonly closed: () => void
  }) {
    this.connectionId = options.connectionId
    this.environmentId = options.environmentId
    this.#door = options.door
    this.#run = options.run
    this.#whenClosed = options.closed
  }

  push(frame: Frame): void {
    this.#door.push(frame)
  }

  warn(error: CodedError): void {
    const warning: Warn = { t: "warn", ...toWire(error) }
    this.push(Frame.of(warning))
  }

  /** Work that ends with the connection. */
  start(effect: Effect.Effect<void>): void {
    if (this.#closed) return
    const fiber = this.#run(effect)
    if (fiber.pollUnsafe() !== undefined) return
    this.#work.add(fiber)
    fiber.addObserver(() => this.#work.delete(fiber))
  }

  /** The way out is closed. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#whenClosed()
    for (const { line } of this.channels.values()) line.disconnect(this)
    this.channels.clear()
    for (const fiber of this.#work) this.#run(Fiber.interrupt(fiber))
  }
}
