/**
 * Actor of the live sessions of a bucket of players. When a player first connects, the bucket looks
 * up the seat of its session; commands wait meanwhile. It forgets a session some time after the
 * last disconnect.
 *
 * A node names all its connections when it attaches: its other connections are gone. A bucket
 * without a lease is fenced and ends all streams.
 */
import { Result } from "effect"
import { toWire, Unauthorized, Unavailable } from "#rpc/errors/codes"
import { Activation } from "../activation.ts"
import type { Watcher, Watchers } from "../watchers.ts"
import type { PlayerSessionCommand, Present, SessionInput, SessionOutput } from "./protocol.ts"
import { playerSessions } from "./protocol.ts"
import { decide, noReservation, type Reservation, type SessionState } from "./state.ts"

/** Dependencies of a sessions actor on its process. */
export interface SessionsRuntime {
  readonly now: () => number
  /** Whether this process surely still owns the bucket's shard. */
  readonly hasLease: () => boolean
  /** Time for which a session without a connection is kept, in milliseconds. */
  readonly idleMillis: number
  /** Calls `tick` at this time (Unix milliseconds), or earlier. */
  readonly wakeAt: (millis: number) => void
  /** Loads the seats of these players, then calls `loaded`. */
  readonly load: (playerIds: ReadonlyArray<string>) => void
}

interface Request {
  readonly node: string
  readonly seq: number
  readonly command: PlayerSessionCommand
}

interface Session {
  state: SessionState
  /** The node of the newest connection. */
  node: string
  /** Requests that wait for the look-up; undefined once it is done. */
  waiting: Array<Request> | undefined
}

export class SessionsActor {
  readonly activation: Activation<SessionOutput>
  readonly #runtime: SessionsRuntime
  readonly #sessions = new Map<string, Session>()
  /** Players without a connection, with the start of their idle time; the longest idle first. */
  readonly #idle = new Map<string, number>()
  readonly #watchers: Watchers<SessionOutput>
  /** Players whose look-up starts with the end of this step. */
  #toLoad: Array<string> = []

  constructor(epoch: number, runtime: SessionsRuntime) {
    this.activation = new Activation(epoch, runtime.hasLease)
    this.#watchers = this.activation.watchers
    this.#runtime = runtime
  }

  get fenced(): boolean {
    return this.activation.fenced
  }

  /** Number of sessions in memory. */
  get size(): number {
    return this.#sessions.size
  }

  /** The session of a player, for tests and checks. */
  stateOf(playerId: string): SessionState | undefined {
    return this.#sessions.get(playerId)?.state
  }

  /** Executes the commands of one node. */
  submit(node: string, inputs: ReadonlyArray<SessionInput>): void {
    if (!this.activation.isActive || !this.#watchers.has(node)) return
    for (const { command, seq } of inputs) {
      if (this.#watchers.acceptCall(node, seq)) this.#handle({ node, seq, command })
    }
    this.#finishStep()
  }

  /** Applies the result of a look-up; players missing in `seats` have no seat. */
  loaded(playerIds: ReadonlyArray<string>, seats: ReadonlyMap<string, string>): void {
    if (!this.activation.isActive) return
    for (const playerId of playerIds) {
      const session = this.#sessions.get(playerId)
      if (session?.waiting === undefined) continue
      const roomId = seats.get(playerId)
      const reservation: Reservation =
        roomId === undefined ? noReservation : { kind: "seat", roomId }
      session.state = { ...session.state, reservation }
      const { waiting } = session
      session.waiting = undefined
      for (const request of waiting) this.#decide(session, request)
      this.#trackIdle(playerId, session.state)
    }
    this.#finishStep()
  }

  /** Attaches a node with the connections that it holds. */
  attach(node: string, watcher: Watcher<SessionOutput>, present: ReadonlyArray<Present>): void {
    if (!this.activation.isActive) return watcher.end()
    this.#watchers.add(node, watcher)
    watcher.send([])
    this.#detachExcept(node, new Set(present.map(({ connectionId }) => connectionId)))
    for (const connection of present) {
      this.#handle({ node, seq: 0, command: { t: "attach", ...connection } })
    }
    this.#finishStep()
  }

  /** Detaches a node whose stream broke: its connections are gone until it attaches again. */
  detach(node: string, watcher: Watcher<SessionOutput>): void {
    if (this.#watchers.remove(node, watcher)) this.#detachExcept(node, new Set())
  }

  /** Removes sessions whose idle time has passed. */
  tick(): void {
    const before = this.#runtime.now() - this.#runtime.idleMillis
    for (const [playerId, since] of this.#idle) {
      if (since > before) return this.#runtime.wakeAt(since + this.#runtime.idleMillis)
      this.#forget(playerId)
    }
  }

  #handle(request: Request): void {
    const session = this.#sessions.get(request.command.playerId)
    if (session === undefined) this.#open(request)
    else if (session.waiting === undefined) this.#decide(session, request)
    else if (session.waiting.length < playerSessions.waitingPerSession)
      session.waiting.push(request)
    else this.#refuse(request, new Unavailable())
  }

  /**
   * Opens a session for a new connection. Without a session, `detach` and `release` have nothing to
   * do and succeed.
   */
  #open(request: Request): void {
    const { command, node } = request
    if (command.t !== "attach") {
      if (command.t === "detach" || command.t === "release") this.#reply(request, noReservation)
      else this.#refuse(request, new Unavailable())
      return
    }
    if (!this.#hasSpace()) return this.#refuse(request, new Unavailable())
    const { playerId, reservation } = command
    const session: Session = {
      state: { connectionId: null, reservation },
      node,
      waiting: undefined
    }
    this.#sessions.set(playerId, session)
    if (reservation.kind !== "none") return this.#decide(session, request)
    session.waiting = [request]
    this.#toLoad.push(playerId)
  }

  /** Whether the bucket has space for one more session; forgets an idle one if need be. */
  #hasSpace(): boolean {
    if (this.#sessions.size < playerSessions.perBucket) return true
    const [longestIdle] = this.#idle.keys()
    if (longestIdle === undefined) return false
    this.#forget(longestIdle)
    return true
  }

  #decide(session: Session, request: Request): void {
    const { command, node } = request
    const result = decide(session.state, command)
    if (Result.isFailure(result)) return this.#refuse(request, result.failure)
    const { replaced, state } = result.success
    if (replaced !== null) {
      const isOlder = command.t === "attach" && replaced === command.connectionId
      this.#send(isOlder ? node : session.node, { kind: "replaced", connectionId: replaced })
      if (isOlder) return this.#refuse(request, new Unauthorized())
    }
    session.state = state
    if (command.t === "attach") session.node = node
    this.#reply(request, state.reservation)
    this.#trackIdle(command.playerId, state)
  }

  /** Detaches the connections of a node that are not present. */
  #detachExcept(node: string, present: ReadonlySet<string>): void {
    for (const [playerId, session] of this.#sessions) {
      const { connectionId } = session.state
      session.waiting = session.waiting?.filter((request) => request.node !== node)
      if (session.node !== node || connectionId === null || present.has(connectionId)) continue
      this.#decide(session, { node, seq: 0, command: { t: "detach", playerId, connectionId } })
    }
  }

  #trackIdle(playerId: string, { connectionId }: SessionState): void {
    this.#idle.delete(playerId)
    if (connectionId !== null) return
    const now = this.#runtime.now()
    this.#idle.set(playerId, now)
    this.#runtime.wakeAt(now + this.#runtime.idleMillis)
  }

  #forget(playerId: string): void {
    this.#idle.delete(playerId)
    this.#sessions.delete(playerId)
  }

  #reply({ node, seq }: Request, reservation: Reservation): void {
    if (seq === 0) return
    const roomId = reservation.kind === "seat" ? reservation.roomId : null
    this.#send(node, { kind: "done", seq, roomId })
  }

  #refuse({ node, seq }: Request, error: Parameters<typeof toWire>[0]): void {
    if (seq > 0) this.#send(node, { kind: "refused", seq, error: toWire(error) })
  }

  #send(node: string, output: SessionOutput): void {
    this.#watchers.push(node, output)
  }

  /** Starts the look-ups of new sessions, and sends each node its outputs. */
  #finishStep(): void {
    const playerIds = this.#toLoad
    this.#toLoad = []
    for (let at = 0; at < playerIds.length; at += playerSessions.seatsPerStatement) {
      this.#runtime.load(playerIds.slice(at, at + playerSessions.seatsPerStatement))
    }
    this.#watchers.flush()
  }
}
