/**
 * Link to one bucket of player sessions for all connections of this node whose players are in it: a
 * connection costs an entry, no fiber. The link keeps the connections and presents all of them, with
 * their reservations, at each attachment.
 */
import { Effect, Stream } from "effect"
import { type CodedError, fromWire, Unavailable } from "#rpc/errors/codes"
import { type CloseCode, closeCodes } from "#rpc/realtime"
import { LocalSessions } from "#entities/player-session/entity"
import {
  type PlayerSessionCommand,
  PlayerSessions,
  type SessionInput,
  type SessionOutput,
  sessionsId
} from "#entities/player-session/protocol"
import { EntityLink, type LinkOptions } from "./entity-link.ts"
import { LinkRegistry } from "./link-registry.ts"
import type { NodeContexts } from "./node-contexts.ts"
import { makeReplyDeadlines, noReply, type ReplyDeadline } from "./reply-deadlines.ts"
import type { ReservationManager } from "./reservations.ts"

export type SessionsClient = Effect.Success<typeof PlayerSessions.client>

/** A connection as its player's session sees it. */
export interface SessionSubscriber {
  readonly connectionId: string
  readonly playerId: string
  readonly reservations: ReservationManager
  /** Closes the connection; the reason is the error's code. */
  readonly dismiss: (code: CloseCode, error: CodedError) => void
}

/** A session's reply: the room of the seat that it knows of. */
export interface SessionData {
  readonly roomId: string | null
}

const replaced: CodedError = { _tag: "replaced", message: "A newer connection took over." }

interface SessionLinkOptions extends LinkOptions<SessionsClient, LocalSessions["Service"]> {
  readonly deadline: ReplyDeadline
}

export class SessionLink extends EntityLink<
  PlayerSessionCommand,
  SessionOutput,
  SessionData,
  SessionLinkOptions
> {
  readonly #connections = new Map<string, SessionSubscriber>()

  /** Attaches a connection to its player's session; succeeds with the room of a kept seat. */
  connect(connection: SessionSubscriber): Effect.Effect<SessionData, CodedError> {
    const { connectionId, playerId, reservations } = connection
    this.#connections.set(connectionId, connection)
    return this.request({ t: "attach", playerId, connectionId, reservation: reservations.current })
  }

  /**
   * Detaches a closed connection. If that fails, the link attaches again, and the session learns who is
   * left.
   */
  disconnect({ connectionId, playerId }: SessionSubscriber): void {
    if (!this.#connections.delete(connectionId)) return this.closeIfIdle()
    this.send({ t: "detach", playerId, connectionId }, (result) => {
      if (!result.ok) this.detach()
      this.closeIfIdle()
    })
  }

  /** Sends a command and waits for the reply; fails with `noReply` when it is overdue. */
  requestWithDeadline(command: PlayerSessionCommand): Effect.Effect<SessionData, CodedError> {
    return Effect.callback((resume) => {
      const replied = this.options.deadline(() => {
        resume(Effect.fail(noReply))
        this.closeIfIdle()
      })
      this.send(command, (result) => {
        replied()
        resume(result.ok ? Effect.succeed(result.data) : Effect.fail(result.error))
        this.closeIfIdle()
      })
      return Effect.sync(() => {
        replied()
        this.closeIfIdle()
      })
    })
  }

  protected override call(inputs: ReadonlyArray<SessionInput>) {
    const { node } = this.context
    return this.options.client(this.options.id).Input({ node, watch: this.attachment, inputs })
  }

  protected override watch() {
    const present = Array.from(
      this.#connections.values(),
      ({ connectionId, playerId, reservations }) => ({
        playerId,
        connectionId,
        reservation: reservations.present()
      })
    )
    return this.options
      .client(this.options.id)
      .Watch({ node: this.context.node, watch: this.attachment, present })
      .pipe(Stream.mapError(() => new Unavailable()))
  }

  /**
   * Whether the command may be repeated. Attaching the same connection again changes nothing, and
   * an older connection never replaces a newer one. Only the sender of another command can find out
   * whether it was executed.
   */
  protected override isRepeatable({ t }: PlayerSessionCommand): boolean {
    return t === "attach"
  }

  protected override isInUse(): boolean {
    return this.#connections.size > 0
  }

  protected override handle(outputs: ReadonlyArray<SessionOutput>): void {
    for (const output of outputs) {
      switch (output.kind) {
        case "done":
          this.reply(output.seq, { ok: true, data: { roomId: output.roomId } })
          break
        case "refused":
          this.reply(output.seq, { ok: false, error: fromWire(output.error) })
          break
        case "replaced":
          this.#connections.get(output.connectionId)?.dismiss(closeCodes.replaced, replaced)
          break
      }
    }
  }
}

/** The links to buckets of sessions, by player id; the players of a bucket share one. */
export const makeSessionLinks = Effect.fnUntraced(function* ({ immediateContext }: NodeContexts) {
  const local = yield* LocalSessions
  const client = yield* PlayerSessions.client
  const deadline = yield* makeReplyDeadlines
  return new LinkRegistry<SessionLink>({
    idOf: sessionsId,
    make: (target) =>
      new SessionLink({ ...target, client, local, context: immediateContext, deadline }),
    receivers: local.receivers
  })
})
