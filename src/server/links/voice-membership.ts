/**
 * A connection's part in the voice call of one of its channels. The frames of the connection begin and
 * leave its session; the link to the channel ends it when the call ends.
 */
import { Effect } from "effect"
import { epochOf } from "#entities/voice-session/model"

export class VoiceMembership {
  #session: string | undefined
  #hasAsked = false
  /** Number of times that the call has ended for the connection. */
  #endings = 0
  /** Ends the session, while the other members of the call see the connection's address. */
  #endDirect: Effect.Effect<void> | undefined

  /** Whether the connection has asked for a place in the call, which it may have by now. */
  get hasAsked(): boolean {
    return this.#hasAsked
  }

  /** Ends the session if the other members of the call see the connection's address. */
  get endDirect(): Effect.Effect<void> {
    return this.#endDirect ?? Effect.void
  }

  /** Records a request for a place in the call; returns the argument of `hasEndedSince`. */
  ask(): number {
    this.#hasAsked = true
    return this.#endings
  }

  /** Whether the call has ended for the connection since this request. */
  hasEndedSince(asked: number): boolean {
    return this.#endings !== asked
  }

  /**
   * Starts the session of the connection; `endDirect` is set where the other members see its
   * address.
   */
  begin(session: string, endDirect: Effect.Effect<void> | undefined): void {
    this.#session = session
    this.#endDirect = endDirect
  }

  /** Whether the connection still has this session. */
  isIn(session: string): boolean {
    return this.#session === session
  }

  /** Whether the session is of another activation of the channel than the one of this epoch. */
  isLostAt(epoch: number): boolean {
    return this.#session !== undefined && epochOf(this.#session) !== epoch
  }

  /** Ends the session alone: the call goes on. */
  leave(): void {
    this.#session = undefined
    this.#endDirect = undefined
  }

  /**
   * Ends the session with its call; a request for a place that has no reply yet is void. Returns whether there
   * was a session.
   */
  end(): boolean {
    const wasIn = this.#session !== undefined
    this.leave()
    this.#endings += 1
    return wasIn
  }
}
