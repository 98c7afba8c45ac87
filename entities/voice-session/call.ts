/**
 * A live call: holds the state, lets the state machine decide, and follows its channel, in whose actor's
 * life it lives. Its events reach members through the channel's watchers.
 */
import { Result } from "effect"
import { VoiceUnavailable } from "#rpc/errors/codes"
import type { VoiceCloseReason, VoiceEvent } from "#rpc/voice"
import type { ChannelActor } from "../channel/actor.ts"
import { type ChannelState, memberOf, nodesOf, selfOf } from "../channel/model.ts"
import type { MediaCall, MediaListener, MediaOffer } from "./media.ts"
import {
  type CallCommand,
  type CallDecision,
  type CallEmission,
  type CallError,
  type CallState,
  memberWith,
  retryAfter
} from "./model.ts"
import { decide, listed, nextDeadline } from "./state.ts"

/** Dependencies of a call on its process. */
export interface CallRuntime {
  readonly now: () => number
  /** Returns a number in [0, 1). */
  readonly random: () => number
  /** Calls `tick` at this time (Unix milliseconds), or earlier. */
  readonly wakeAt: (millis: number) => void
  /** Reports that the call has no members any more. */
  readonly ended: (call: VoiceCall) => void
}

export class VoiceCall implements MediaListener {
  readonly channel: ChannelActor
  state: CallState
  readonly #runtime: CallRuntime
  #media: MediaCall | undefined
  #ended = false
  /** Whether the first member has joined. A call without members ends only after that. */
  #wasJoined = false
  /** The session on each slot that was ever taken. */
  readonly #slots = new Map<string, string | null>()
  /** The state of the channel that the call has followed last. */
  #followed: ChannelState | undefined

  constructor(channel: ChannelActor, state: CallState, runtime: CallRuntime) {
    this.channel = channel
    this.state = state
    this.#runtime = runtime
    channel.steps.register(() => this.#follow())
  }

  /** Connects the call to its media. */
  useMedia(media: MediaCall): void {
    if (this.#ended) return media.end()
    this.#media = media
  }

  get media(): MediaCall | undefined {
    return this.#media
  }

  run(command: CallCommand): Result.Result<void, CallError> {
    if (this.#ended) return Result.fail(new VoiceUnavailable())
    const now = this.#runtime.now()
    const decided = Result.filterOrFail(
      decide(this.state, command, now),
      (decision) => this.#admits(decision),
      () => new VoiceUnavailable({ message: "Too many players join voice calls: try again." })
    )
    return Result.map(decided, (decision) => {
      this.#apply(decision)
      this.#apply(listed(this.state, now))
      if (command.t === "join") this.#sendSlots([command.playerId], this.#slots)
      this.channel.watchers.flush()
      this.#syncMemberCount()
    })
  }

  tick(): void {
    this.run({ t: "tick" })
  }

  /** Sends what members may have missed while their node was not attached: the list, and who is on which slot. */
  repeat(players: ReadonlyArray<string>): void {
    this.#sendSlots(players, this.#slots)
    this.run({ t: "list" })
  }

  end(reason: VoiceCloseReason): void {
    this.run({ t: "end", reason })
    this.abandon()
  }

  /** Ends a call without members, such as one whose first joiner is refused. */
  abandon(): void {
    if (this.state.members.size === 0) this.#close()
  }

  offered(offer: MediaOffer): void {
    const member = memberWith(this.state, offer.session)
    if (member === undefined) return
    this.#send([member.id], { t: "voice_sfu_offer", channel: this.state.channel, ...offer })
    this.channel.watchers.flush()
  }

  speaking(bySlot: Readonly<Record<string, string | null>>): void {
    const changes = new Map(Object.entries(bySlot))
    for (const [slot, session] of changes) this.#slots.set(slot, session)
    this.#sendSlots(Array.from(this.state.members.keys()), changes)
    this.channel.watchers.flush()
  }

  failed(session: string): void {
    this.run({ t: "failed", session, retryAfterMs: retryAfter(this.#runtime.random()) })
  }

  lost(): void {
    const retryAfterMs = () => retryAfter(this.#runtime.random())
    this.run({ t: "end", reason: "unavailable", retryAfterMs })
    this.#close()
  }

  /**
   * Handles a change of the channel, or the end of its activation: then the links inform the
   * members.
   */
  #follow(): void {
    const { state } = this.channel
    if (this.channel.fenced) return this.#close()
    if (state !== undefined && state === this.#followed) return
    this.#followed = state
    const now = this.#runtime.now()
    this.run({
      t: "follow",
      memberOf: (id) => {
        const member = state === undefined ? undefined : memberOf(state, id)
        if (state === undefined || member === undefined) return undefined
        return {
          connectionId: member.attachment?.connectionId,
          canSpeak: selfOf(state, id, now).canSend
        }
      }
    })
    if (state === undefined) this.abandon()
  }

  /** Whether the media takes the sessions that the decision opens. */
  #admits({ emissions }: CallDecision): boolean {
    return emissions.every(
      (emission) => emission.kind !== "opened" || this.#media?.reserve(emission.session) !== false
    )
  }

  #apply({ emissions, state }: CallDecision): void {
    this.state = state
    for (const emission of emissions) this.#emit(emission)
  }

  #emit(emission: CallEmission): void {
    switch (emission.kind) {
      case "event":
        return this.#send(emission.to, emission.event)
      case "opened":
        return this.#media?.open(emission.session)
      case "closed":
        return this.#media?.close(emission.session)
      case "microphone":
        return this.#media?.setMicrophone(emission.session, emission.open)
    }
  }

  #sendSlots(to: ReadonlyArray<string>, bySlot: ReadonlyMap<string, string | null>): void {
    if (bySlot.size === 0) return
    const slots = Object.fromEntries(
      Array.from(bySlot, ([slot, session]) => [
        slot,
        session === null ? null : (memberWith(this.state, session)?.id ?? null)
      ])
    )
    this.#send(to, { t: "voice_speaking", channel: this.state.channel, slots })
  }

  #send(to: ReadonlyArray<string>, event: VoiceEvent): void {
    const { state, watchers } = this.channel
    if (state === undefined || to.length === 0) return
    const frame = JSON.stringify(event)
    for (const node of nodesOf(state, to)) {
      watchers.push(node, { kind: "event", to, listeners: false, frame })
    }
  }

  /** Reports the number of members to the channel, and ends a call without members. */
  #syncMemberCount(): void {
    const inCall = this.state.members.size
    this.channel.setInCall(inCall)
    this.#wasJoined ||= inCall > 0
    if (inCall > 0) this.#runtime.wakeAt(nextDeadline(this.state))
    else if (this.#wasJoined) this.#close()
  }

  #close(): void {
    if (this.#ended) return
    this.#ended = true
    this.channel.steps.register(() => undefined)
    this.#media?.end()
    this.#runtime.ended(this)
  }
}
