/**
 * The events that wait in an events stream of `/v1/rpc` for the client to acknowledge those before. Bounded
 * in bytes as the outbox of a socket is: a client that does not acknowledge reads too slowly.
 */
import { Cause, Effect, Option, Queue, Schema, Stream } from "effect"
import { rooms } from "#rpc/limits"
import { type EventsError, ServerEvent } from "#rpc/realtime"
import { type Frame, OutboxBound } from "#server/platform/socket-outbox"

export type EventError = typeof EventsError.Type

interface Waiting {
  readonly event: ServerEvent
  readonly bytes: number
}

const decodeEvent = Schema.decodeUnknownOption(Schema.fromJsonString(ServerEvent))

export class EventQueue {
  readonly #queue: Queue.Queue<Waiting, EventError>
  #bytes = 0
  readonly #bound = new OutboxBound()

  private constructor(queue: Queue.Queue<Waiting, EventError>) {
    this.#queue = queue
  }

  static readonly make = Effect.map(
    Queue.bounded<Waiting, EventError>(rooms.watchBufferItems),
    (queue) => new EventQueue(queue)
  )

  /** The events in order, until the queue ends. */
  get events(): Stream.Stream<ServerEvent, EventError> {
    return Stream.map(Stream.fromQueue(this.#queue), ({ bytes, event }) => {
      this.#bytes -= bytes
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
    return true
  }

  /** Ends the stream with an error after the events that wait. */
  fail(error: EventError): void {
    Queue.failCauseUnsafe(this.#queue, Cause.fail(error))
  }
}
