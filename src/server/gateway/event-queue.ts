/**
 * The events that wait in an events stream of `/v1/rpc` for the client to acknowledge those before. Bounded
 * in bytes as the outbox of a socket is: a client that does not acknowledge reads too slowly.
 */
import { Cause, Effect, Option, Queue, Schema, Stream } from "effect"
import { type EventsError, ServerEvent } from "#rpc/realtime"
import { watchBufferItems } from "#entities/output-queue"
import type { Backlog, OutboxBudget } from "#server/platform/outbox-budget"
import { type Frame, OutboxBound, type OutboxOwner } from "#server/platform/socket-outbox"

export type EventError = typeof EventsError.Type

interface Waiting {
  readonly event: ServerEvent
  readonly bytes: number
}

const decodeEvent = Schema.decodeUnknownOption(Schema.fromJsonString(ServerEvent))

export class EventQueue implements Backlog {
  readonly #queue: Queue.Queue<Waiting, EventError>
  readonly #budget: OutboxBudget
  readonly #owner: OutboxOwner
  #bytes = 0
  readonly #bound = new OutboxBound()

  private constructor(
    queue: Queue.Queue<Waiting, EventError>,
    budget: OutboxBudget,
    owner: OutboxOwner
  ) {
    this.#queue = queue
    this.#budget = budget
    this.#owner = owner
  }

  /** A queue for the events of a socket, until the scope closes. */
  static readonly make = (budget: OutboxBudget, owner: OutboxOwner) =>
    Effect.acquireRelease(
      Effect.map(
        Queue.bounded<Waiting, EventError>(watchBufferItems),
        (queue) => new EventQueue(queue, budget, owner)
      ),
      (queue) => Effect.sync(() => budget.release(queue))
    )

  get environmentId(): string {
    return this.#owner.environmentId
  }

  get waitingBytes(): number {
    return this.#bytes
  }

  get isClosing(): boolean {
    return this.#owner.isClosed
  }

  closeSlow(): void {
    this.#owner.closeSlow()
  }

  cut(): void {
    this.#owner.cut()
  }

  /** The events in order, until the queue ends. */
  get events(): Stream.Stream<ServerEvent, EventError> {
    return Stream.map(Stream.fromQueue(this.#queue), ({ bytes, event }) => {
      this.#bytes -= bytes
      this.#budget.count(this)
      return event
    })
  }

  /** Adds an event; false if too much waits. */
  offer(frame: Frame): boolean {
    const bytes = Buffer.byteLength(frame.text)
    if (!this.#bound.fits(this.#bytes, bytes)) return false
    const event = decodeEvent(frame.text)
    // A runner of a later release may send an event that this one does not know.
    if (Option.isNone(event)) return true
    if (!Queue.offerUnsafe(this.#queue, { event: event.value, bytes })) return false
    this.#bytes += bytes
    this.#budget.count(this)
    return true
  }

  /** Fails the stream after the events that wait. */
  fail(error: EventError): void {
    Queue.failCauseUnsafe(this.#queue, Cause.fail(error))
  }
}
