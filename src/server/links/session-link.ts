/**
 * The line to one bucket of players' sessions for all of a node's connections of these players: a
 * connection costs an entry, no fiber. The connections are held here: each attachment, whoever
 * answers it, hears of all of them, with the places that they were granted.
 */
import { Effect, Stream } from "effect"
import { type CodedError, Unavailable } from "#rpc/errors/codes"
import { closeCodes } from "#rpc/realtime"
import type { LocalSessions } from "#entities/player-session/entity"
import type {
  PlayerSessionCommand,
  PlayerSessions,
  Present,
  SessionInput,
  SessionOutput
} from "#entities/player-session/protocol"
import { EntityLink } from "./entity-link.ts"
import type { PlayerConnection } from "./player-connection.ts"
import type { NodeContext } from "./room-link.ts"

export type SessionsClient = Effect.Success<typeof PlayerSessions.client>

/** What the session answers: the seat that it knows of. */
export interface SessionDone {
  readonly roomId: string | null
}

const replaced: CodedError = { _tag: "replaced", message: "A newer connection took over." }

export class SessionLink {
  readonly #link: EntityLink<PlayerSessionCommand, SessionOutput, SessionDone>
  readonly #held = new Map<string, PlayerConnection>()
  readonly #ended: (link: SessionLink) => void
  /** The number of the attachment. */
  #watch = 0

  constructor(options: {
    readonly sessionsId: string
    readonly client: SessionsClient
    readonly local: LocalSessions["Service"]
    readonly surroundings: NodeContext
    readonly ended: (link: SessionLink) => void
  }) {
    const { client, local, sessionsId, surroundings } = options
    const { node } = surroundings
    this.#ended = options.ended
    this.#link = new EntityLink({
      ...surroundings,
      target: {
        local: () => {
          const actor = local.actors.get(sessionsId)
          if (actor === undefined || !actor.watches(node, this.#watch)) return undefined
          return {
            submit: (_: string, inputs: ReadonlyArray<SessionInput>): void =>
              actor.submit(node, this.#watch, inputs)
          }
        },
        input: (inputs) =>
          client(sessionsId)
            .Input({ node, watch: this.#watch, inputs })
            .pipe(Effect.mapError(() => new Unavailable())),
        watch: () => {
          this.#watch = surroundings.nextWatch()
          return client(sessionsId)
            .Watch({ node, watch: this.#watch, present: this.#tellAll() })
            .pipe(Stream.mapError(() => new Unavailable()))
        },
        receive: (items) => this.#receive(items),
        // Whether another command was carried out is for whoever gave it to find out.
        repeatable: (command) => command.t === "attach",
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

  receive(epoch: number, items: ReadonlyArray<SessionOutput>): void {
    this.#link.receive(epoch, items)
  }

  /** Opens the player's session for a connection; answers the room of a seat that is kept. */
  hold(connection: PlayerConnection): Effect.Effect<SessionDone, CodedError> {
    const { connectionId, reservation, playerId } = connection
    this.#held.set(connectionId, connection)
    return this.#link.request({ t: "attach", playerId, connectionId, reservation })
  }

  /** The connection is gone. When there is no telling that, the bucket hears who is not. */
  drop({ connectionId, playerId }: PlayerConnection): void {
    if (!this.#held.delete(connectionId)) return this.#rest()
    this.#link.send({ t: "detach", playerId, connectionId }, (answer) => {
      if (!answer.ok) this.#link.broken()
      this.#rest()
    })
  }

  request(command: PlayerSessionCommand): Effect.Effect<SessionDone, CodedError> {
    return Effect.ensuring(
      this.#link.request(command),
      Effect.sync(() => this.#rest())
    )
  }

  /**
   * What each connection holds, for a new attachment. Whoever has an answer of the one before still
   * to read asks anew.
   */
  #tellAll(): ReadonlyArray<Present> {
    return Array.from(this.#held.values(), (connection) => {
      connection.attachments += 1
      const { connectionId, reservation, playerId } = connection
      return { playerId, connectionId, reservation }
    })
  }

  #receive(items: ReadonlyArray<SessionOutput>): void {
    for (const item of items) {
      switch (item.kind) {
        case "done":
          this.#link.answer(item.seq, { ok: true, data: { roomId: item.roomId } })
          break
        case "refused": {
          const { code, details, message } = item.error
          const error = { _tag: code, message, ...(details === undefined ? {} : { details }) }
          this.#link.answer(item.seq, { ok: false, error })
          break
        }
        case "replaced":
          this.#held.get(item.connectionId)?.dismiss(closeCodes.replaced, replaced)
          break
      }
    }
  }

  #rest(): void {
    if (this.#held.size > 0 || !this.#link.idle || this.#link.ended) return
    this.#link.end()
    this.#ended(this)
  }
}
