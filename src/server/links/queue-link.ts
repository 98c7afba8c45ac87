/**
 * The line to one matchmaking queue for all of a node's tickets in it. The tickets are held here: a
 * queue that moved gets them again.
 */
import { Effect, Stream } from "effect"
import { type CodedError, MatchCancelled, RateLimited, Unavailable } from "#rpc/errors/codes"
import type { LocalQueues } from "#entities/matchmaking-queue/entity"
import type {
  MatchmakingQueue,
  QueueCommand,
  QueueOutput
} from "#entities/matchmaking-queue/protocol"
import { EntityLink } from "./entity-link.ts"
import type { NodeContext } from "./room-link.ts"

export type QueueClient = Effect.Success<typeof MatchmakingQueue.client>
type Enqueue = Extract<QueueCommand, { t: "enqueue" }>

interface Held {
  readonly command: Enqueue
  readonly done: (outcome: Effect.Effect<string, CodedError>) => void
}

export class QueueLink {
  readonly environmentId: string
  readonly mode: string
  readonly #link: EntityLink<QueueCommand, QueueOutput, { readonly cancelled: boolean }>
  readonly #tickets = new Map<string, Held>()
  readonly #ended: (link: QueueLink) => void

  constructor(options: {
    readonly queueId: string
    readonly client: QueueClient
    readonly local: LocalQueues["Service"]
    readonly surroundings: NodeContext
    readonly ended: (link: QueueLink) => void
  }) {
    const { client, local, queueId, surroundings } = options
    const { node } = surroundings
    const [environmentId = "", mode = ""] = queueId.split("/")
    this.environmentId = environmentId
    this.mode = mode
    this.#ended = options.ended
    this.#link = new EntityLink({
      ...surroundings,
      target: {
        local: () => local.actors.get(queueId),
        input: (inputs) =>
          Effect.mapError(client(queueId).Input({ node, inputs }), () => new Unavailable()),
        watch: () =>
          client(queueId)
            .Watch({ node })
            .pipe(Stream.mapError(() => new Unavailable())),
        receive: (items) => this.#receive(items),
        repeatable: () => false,
        attached: () => {
          for (const { command } of this.#tickets.values()) this.#link.send(command)
        },
        lost: () => undefined
      }
    })
  }

  /** Begins to watch; the link is in the hub's map by now. */
  start(): void {
    this.#link.start()
  }

  get ended(): boolean {
    return this.#link.ended
  }

  get tickets(): Iterable<string> {
    return this.#tickets.keys()
  }

  receive(epoch: number, items: ReadonlyArray<QueueOutput>): void {
    this.#link.receive(epoch, items)
  }

  /** Waits for the room of a match. Interruption takes the ticket out. */
  wait(command: Enqueue): Effect.Effect<string, CodedError> {
    return Effect.callback<string, CodedError>((resume) => {
      this.#tickets.set(command.ticketId, { command, done: resume })
      if (this.#link.attached) this.#link.send(command)
      return Effect.sync(() => {
        this.#tickets.delete(command.ticketId)
        this.#link.send({ t: "cancel", ticketId: command.ticketId }, () => this.#rest())
      })
    })
  }

  /** The mode has changed: the tickets that wait do so under its new numbers. */
  configure(settings: Enqueue["settings"]): void {
    for (const [ticketId, held] of this.#tickets) {
      this.#tickets.set(ticketId, { ...held, command: { ...held.command, settings } })
    }
    if (this.#link.attached) this.#link.send({ t: "configure", settings })
  }

  /**
   * Takes a ticket out; false when its match was already made. A ticket that the queue has not got
   * yet, or has to be given again, is simply not given.
   */
  cancel(ticketId: string): Effect.Effect<boolean, CodedError> {
    return Effect.suspend(() => {
      if (!this.#link.attached) return Effect.sync(() => this.#cancelled(ticketId, true))
      return this.#link.request({ t: "cancel", ticketId }).pipe(
        Effect.map(({ cancelled }) => this.#cancelled(ticketId, cancelled)),
        Effect.catch(() => Effect.sync(() => this.#cancelled(ticketId, true)))
      )
    })
  }

  /** A ticket whose wait has ended otherwise by now is not cancelled, whoever says so. */
  #cancelled(ticketId: string, cancelled: boolean): boolean {
    if (!cancelled || !this.#tickets.has(ticketId)) return false
    this.fail(ticketId, new MatchCancelled())
    return true
  }

  /** Ends the wait of all tickets of this node. */
  failAll(error: CodedError): void {
    for (const ticketId of Array.from(this.#tickets.keys())) {
      this.#link.send({ t: "cancel", ticketId }, () => this.#rest())
      this.fail(ticketId, error)
    }
  }

  /** Ends a ticket's wait with an error. */
  fail(ticketId: string, error: CodedError): void {
    this.#settle(ticketId, Effect.fail(error))
  }

  #receive(items: ReadonlyArray<QueueOutput>): void {
    for (const item of items) {
      switch (item.kind) {
        case "matched":
          this.#settle(item.ticketId, Effect.succeed(item.roomId))
          break
        case "full":
          this.fail(item.ticketId, new RateLimited({ details: { retryAfterSeconds: 1 } }))
          break
        case "cancelled":
          this.#link.answer(item.seq, { ok: true, data: { cancelled: item.cancelled } })
          break
      }
    }
    this.#rest()
  }

  #settle(ticketId: string, outcome: Effect.Effect<string, CodedError>): void {
    const held = this.#tickets.get(ticketId)
    this.#tickets.delete(ticketId)
    held?.done(outcome)
    this.#rest()
  }

  #rest(): void {
    if (this.#tickets.size > 0 || !this.#link.idle || this.#link.ended) return
    this.#link.end()
    this.#ended(this)
  }
}
