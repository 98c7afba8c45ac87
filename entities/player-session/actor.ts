/**
 * The live sessions of a bucket of players. A session is looked up when its player first comes (what
 * is asked of it waits meanwhile) and forgotten a while after the player's last connection is gone.
 *
 * What a node holds it tells when it begins to watch, all of it: whom it does not name is gone. A
 * bucket that may no longer judge ends its watches, and is never asked again.
 */
import { Result } from "effect"
import { toWire, Unauthorized, Unavailable } from "#rpc/errors/codes"
import { playerSessions as limits } from "#rpc/limits"
import type { Watcher } from "../output-queue.ts"
import type { PlayerSessionCommand, Present, SessionInput, SessionOutput } from "./protocol.ts"
import { decide, noReservation, type Reservation, type SessionState } from "./state.ts"

/** What the actor asks of its surroundings. */
export interface SessionsRuntime {
  readonly now: () => number
  /** Are the sessions surely still this process's? */
  readonly hasLease: () => boolean
  /** Call `tick` at this time (Unix milliseconds), or earlier. */
  readonly wakeAt: (millis: number) => void
  /** Looks the seats of these players up, then calls `loaded`. */
  readonly load: (playerIds: ReadonlyArray<string>) => void
}

interface Asked {
  readonly node: string
  readonly seq: number
  readonly command: PlayerSessionCommand
}

interface Session {
  state: SessionState
  /** Where the newest connection is. */
  node: string
  /** What waits until the session is looked up. */
  waiting: Array<Asked> | undefined
}

/** A node that watches. */
interface Node {
  readonly watcher: Watcher<SessionOutput>
  readonly watch: number
  /** The last command: what comes again was sent again by the cluster. */
  seq: number
  batch: Array<SessionOutput>
}

const keepMillis = limits.idleSeconds * 1000

export class SessionsActor {
  readonly epoch: number
  /** Another process may be the judge by now: this one is deaf and dumb. */
  fenced = false
  readonly #port: SessionsRuntime
  readonly #sessions = new Map<string, Session>()
  /** Players without a connection, and since when; the first for longest. */
  readonly #idle = new Map<string, number>()
  readonly #nodes = new Map<string, Node>()
  /** The number of each node's last attachment. */
  readonly #attachments = new Map<string, number>()
  #unknown: Array<string> = []

  constructor(epoch: number, port: SessionsRuntime) {
    this.epoch = epoch
    this.#port = port
  }

  /** How many sessions are remembered. */
  get size(): number {
    return this.#sessions.size
  }

  /** Who judges, for tests and checks: the player's newest connection and reservation. */
  stateOf(playerId: string): SessionState | undefined {
    return this.#sessions.get(playerId)?.state
  }

  /**
   * Is this attachment of a node new? The cluster sends a call again when its connection breaks, and
   * what the node held back then is not what it holds now.
   */
  admits(node: string, watch: number): boolean {
    if ((this.#attachments.get(node) ?? 0) >= watch) return false
    this.#attachments.set(node, watch)
    return true
  }

  /** Does this attachment of the node hear what is told? Only then can it ask. */
  watches(node: string, watch: number): boolean {
    return this.#acts && this.#nodes.get(node)?.watch === watch
  }

  /** What a node asks; nothing becomes of what an attachment that is over has sent. */
  submit(node: string, watch: number, inputs: ReadonlyArray<SessionInput>): void {
    const from = this.#nodes.get(node)
    if (!this.#acts || from?.watch !== watch) return
    for (const { command, seq } of inputs) {
      if (seq <= from.seq) continue
      from.seq = seq
      this.#take({ node, seq, command })
    }
    this.#finish()
  }

  /** The seats that were found; the other players have none. */
  loaded(playerIds: ReadonlyArray<string>, seats: ReadonlyMap<string, string>): void {
    if (!this.#acts) return
    for (const playerId of playerIds) {
      const session = this.#sessions.get(playerId)
      if (session?.waiting === undefined) continue
      const roomId = seats.get(playerId)
      const reservation: Reservation =
        roomId === undefined ? noReservation : { kind: "seat", roomId }
      session.state = { ...session.state, reservation }
      const { waiting } = session
      session.waiting = undefined
      for (const asked of waiting) this.#do(session, asked)
      this.#age(playerId, session.state)
    }
    this.#finish()
  }

  /** A node begins to watch, and tells the connections that it holds. */
  attach(
    node: string,
    watch: number,
    watcher: Watcher<SessionOutput>,
    present: ReadonlyArray<Present>
  ): void {
    if (!this.#acts) return watcher.end()
    this.#nodes.set(node, { watcher, watch, seq: 0, batch: [] })
    watcher.send([])
    this.#leave(node, new Set(present.map(({ connectionId }) => connectionId)))
    for (const held of present) {
      this.#take({ node, seq: 0, command: { t: "attach", ...held } })
    }
    this.#finish()
  }

  /** The node is gone or has lost touch: it brings its connections again if it can. */
  detach(node: string, watcher: Watcher<SessionOutput>): void {
    if (this.#nodes.get(node)?.watcher !== watcher) return
    this.#nodes.delete(node)
    this.#leave(node, new Set())
  }

  /** The bucket moves, or may have moved: the nodes look for it. */
  fence(): void {
    this.fenced = true
    const nodes = Array.from(this.#nodes.values())
    this.#nodes.clear()
    for (const { watcher } of nodes) watcher.end()
  }

  /** Forgets who is away for long. */
  tick(): void {
    const before = this.#port.now() - keepMillis
    for (const [playerId, since] of this.#idle) {
      if (since > before) return this.#port.wakeAt(since + keepMillis)
      this.#forget(playerId)
    }
  }

  get #acts(): boolean {
    if (!this.fenced && !this.#port.hasLease()) this.fence()
    return !this.fenced
  }

  #take(asked: Asked): void {
    const { command } = asked
    const session = this.#sessions.get(command.playerId)
    if (session === undefined) this.#open(asked)
    else if (session.waiting === undefined) this.#do(session, asked)
    else if (session.waiting.length < limits.waitingPerSession) session.waiting.push(asked)
    else this.#refuse(asked, new Unavailable())
  }

  /** Only a connection opens a session; without one there is nothing to give back either. */
  #open(asked: Asked): void {
    const { command, node } = asked
    if (command.t !== "attach") {
      if (command.t === "detach" || command.t === "release") this.#done(asked, noReservation)
      else this.#refuse(asked, new Unavailable())
      return
    }
    if (!this.#hasSpace()) return this.#refuse(asked, new Unavailable())
    const { reservation, playerId } = command
    const session: Session = {
      state: { connectionId: null, reservation },
      node,
      waiting: undefined
    }
    this.#sessions.set(playerId, session)
    if (reservation.kind !== "none") return this.#do(session, asked)
    session.waiting = [asked]
    this.#unknown.push(playerId)
  }

  #hasSpace(): boolean {
    if (this.#sessions.size < limits.perBucket) return true
    const [longest] = this.#idle.keys()
    if (longest === undefined) return false
    this.#forget(longest)
    return true
  }

  #do(session: Session, asked: Asked): void {
    const { command, node } = asked
    const result = decide(session.state, command)
    if (Result.isFailure(result)) return this.#refuse(asked, result.failure)
    const { replaced, state } = result.success
    if (replaced !== null) {
      const older = command.t === "attach" && replaced === command.connectionId
      this.#tell(older ? node : session.node, { kind: "replaced", connectionId: replaced })
      if (older) return this.#refuse(asked, new Unauthorized())
    }
    session.state = state
    if (command.t === "attach") session.node = node
    this.#done(asked, state.reservation)
    this.#age(command.playerId, state)
  }

  /** The node's connections are gone, but for these. */
  #leave(node: string, present: ReadonlySet<string>): void {
    for (const [playerId, session] of this.#sessions) {
      const { connectionId } = session.state
      session.waiting = session.waiting?.filter((asked) => asked.node !== node)
      if (session.node !== node || connectionId === null || present.has(connectionId)) continue
      this.#do(session, { node, seq: 0, command: { t: "detach", playerId, connectionId } })
    }
  }

  #age(playerId: string, { connectionId }: SessionState): void {
    this.#idle.delete(playerId)
    if (connectionId !== null) return
    const now = this.#port.now()
    this.#idle.set(playerId, now)
    this.#port.wakeAt(now + keepMillis)
  }

  #forget(playerId: string): void {
    this.#idle.delete(playerId)
    this.#sessions.delete(playerId)
  }

  #done({ node, seq }: Asked, reservation: Reservation): void {
    if (seq === 0) return
    this.#tell(node, {
      kind: "done",
      seq,
      roomId: reservation.kind === "seat" ? reservation.roomId : null
    })
  }

  #refuse({ node, seq }: Asked, error: Parameters<typeof toWire>[0]): void {
    if (seq > 0) this.#tell(node, { kind: "refused", seq, error: toWire(error) })
  }

  #tell(node: string, item: SessionOutput): void {
    this.#nodes.get(node)?.batch.push(item)
  }

  /** Looks up who is new, and tells the nodes what came of it all. */
  #finish(): void {
    const unknown = this.#unknown
    this.#unknown = []
    for (let at = 0; at < unknown.length; at += limits.seatsPerStatement) {
      this.#port.load(unknown.slice(at, at + limits.seatsPerStatement))
    }
    for (const node of this.#nodes.values()) {
      if (node.batch.length === 0) continue
      const { batch } = node
      node.batch = []
      node.watcher.send(batch)
    }
  }
}
