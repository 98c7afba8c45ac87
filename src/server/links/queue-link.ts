/**
 * Link to one matchmaking queue for all tickets of this node in it. The link keeps the tickets: a queue
 * that has moved gets them again.
 */
import { Effect, Stream } from "effect"
import { type CodedError, MatchCancelled, RateLimited, Unavailable } from "#rpc/errors/codes"
import { LocalQueues } from "#entities/matchmaking-queue/entity"
import {
  MatchmakingQueue,
  type QueueCommand,
  queueId,
  type QueueInput,
  type QueueOutput
} from "#entities/matchmaking-queue/protocol"
import { EntityLink, type LinkOptions } from "./entity-link.ts"
import { LinkRegistry } from "./link-registry.ts"
import type { NodeContexts } from "./node-contexts.ts"

export type QueueClient = Effect.Success<typeof MatchmakingQueue.client>
type Enqueue = Extract<QueueCommand, { t: "enqueue" }>

/** A ticket that waits for its match. */
interface Ticket {
  readonly command: Enqueue
  /** Ends the wait with the id of the match's room, or an error. */
  readonly resume: (outcome: Effect.Effect<string, CodedError>) => void
}

interface CancelData {
  readonly cancelled: boolean
}

export class QueueLink extends EntityLink<
  QueueCommand,
  QueueOutput,
  CancelData,
  LinkOptions<QueueClient, LocalQueues["Service"]>
> {
  readonly #tickets = new Map<string, Ticket>()

  /** Enqueues a ticket and waits for the room of its match. Interruption cancels the ticket. */
  wait(command: Enqueue): Effect.Effect<string, CodedError> {
    const { ticketId } = command
    return Effect.callback<string, CodedError>((resume) => {
      const ticket: Ticket = { command, resume }
      this.#tickets.set(ticketId, ticket)
      if (this.attached) this.send(this.#takeCommand(ticketId, ticket))
      return Effect.sync(() => {
        this.#tickets.delete(ticketId)
        this.send({ t: "cancel", ticketId }, () => this.closeIfIdle())
      })
    })
  }

  /** Applies new settings of the mode to the tickets that wait. */
  configure(settings: Enqueue["settings"]): void {
    for (const [ticketId, ticket] of this.#tickets) {
      this.#tickets.set(ticketId, { ...ticket, command: { ...ticket.command, settings } })
    }
    if (this.attached) this.send({ t: "configure", settings })
  }

  /**
   * Cancels a ticket; false when its match was already made. While the link is not attached the queue
   * does not have the ticket, and does not get it again.
   */
  cancel(ticketId: string): Effect.Effect<boolean, CodedError> {
    return Effect.suspend(() => {
      if (!this.attached) return Effect.sync(() => this.#cancelled(ticketId, true))
      return this.request({ t: "cancel", ticketId }).pipe(
        Effect.map(({ cancelled }) => this.#cancelled(ticketId, cancelled)),
        Effect.catch(() => Effect.sync(() => this.#cancelled(ticketId, true)))
      )
    })
  }

  /** Fails the wait of all tickets of this node. */
  failAll(error: CodedError): void {
    for (const ticketId of Array.from(this.#tickets.keys())) {
      this.send({ t: "cancel", ticketId }, () => this.closeIfIdle())
      this.#fail(ticketId, error)
    }
  }

  protected override call(inputs: ReadonlyArray<QueueInput>) {
    const { node } = this.context
    return this.options.client(this.options.id).Input({ node, watch: this.attachment, inputs })
  }

  protected override watch() {
    return this.options
      .client(this.options.id)
      .Watch({ node: this.context.node, watch: this.attachment })
      .pipe(Stream.mapError(() => new Unavailable()))
  }

  /**
   * Returns false: the link repeats no command. `onAttached` sends every ticket that still waits,
   * before a cancellation that waits to be sent. The queue has a ticket at most once, and knows
   * which it has cancelled.
   */
  protected override isRepeatable(): boolean {
    return false
  }

  /**
   * Maximum number of waiting commands. There is no bound while the link is attached, since each
   * ticket of this node has at most two. A queue forgets the tickets of a node with its attachment,
   * so a cancellation may be lost without one.
   */
  protected override get waitingMax(): number {
    return this.attached ? Number.POSITIVE_INFINITY : super.waitingMax
  }

  protected override isInUse(): boolean {
    return this.#tickets.size > 0
  }

  protected override onAttached(): void {
    this.sendFirst(Array.from(this.#tickets, ([id, ticket]) => this.#takeCommand(id, ticket)))
  }

  protected override handle(outputs: ReadonlyArray<QueueOutput>): void {
    for (const output of outputs) {
      switch (output.kind) {
        case "matched":
          this.#resume(output.ticketId, Effect.succeed(output.roomId))
          break
        case "full":
          this.#fail(output.ticketId, new RateLimited({ details: { retryAfterSeconds: 1 } }))
          break
        case "cancelled":
          this.reply(output.seq, { ok: true, data: { cancelled: output.cancelled } })
          break
      }
    }
    this.closeIfIdle()
  }

  /** The command to send. Its room id goes along once: the queue may have opened the room for others. */
  #takeCommand(ticketId: string, ticket: Ticket): Enqueue {
    const { joiningPlayer, settings, t } = ticket.command
    this.#tickets.set(ticketId, { ...ticket, command: { t, ticketId, joiningPlayer, settings } })
    return ticket.command
  }

  /**
   * Handles the reply to a cancellation. Only a ticket that still waits counts as cancelled,
   * regardless of the queue's reply.
   */
  #cancelled(ticketId: string, cancelled: boolean): boolean {
    if (!cancelled || !this.#tickets.has(ticketId)) return false
    this.#fail(ticketId, new MatchCancelled())
    return true
  }

  #fail(ticketId: string, error: CodedError): void {
    this.#resume(ticketId, Effect.fail(error))
  }

  #resume(ticketId: string, outcome: Effect.Effect<string, CodedError>): void {
    const ticket = this.#tickets.get(ticketId)
    this.#tickets.delete(ticketId)
    ticket?.resume(outcome)
    this.closeIfIdle()
  }
}

/** The links to queues, by mode. */
export const makeQueueLinks = Effect.fnUntraced(function* ({ immediateContext }: NodeContexts) {
  const local = yield* LocalQueues
  const client = yield* MatchmakingQueue.client
  return new LinkRegistry<QueueLink>({
    idOf: queueId,
    make: (target) => new QueueLink({ ...target, client, local, context: immediateContext }),
    receivers: local.receivers
  })
})
