/** The channels of one connection, with what the gateway keeps for each: rate limits and a lock. */
import { Effect, Semaphore } from "effect"
import { channelLimits } from "#rpc/channels/limits"
import { FrameBucket } from "#server/platform/frame-bucket"
import { VoiceMembership } from "./voice-membership.ts"

export const voiceFrames = {
  /** Frames of one connection to the call of one channel; a join counts as `joinFrames`. */
  framesPerSecond: 6,
  framesBurst: 60
} as const

/** A channel that the connection has joined, or has asked to join. */
export interface ChannelMembership<Link> {
  readonly link: Link
  /** Limits the connection's messages. */
  readonly bucket: FrameBucket
  /** Limits the connection's frames to the voice call. */
  readonly voiceBucket: FrameBucket
  readonly voice: VoiceMembership
}

interface Buckets {
  readonly bucket: FrameBucket
  readonly voiceBucket: FrameBucket
}

/** Serializes joins and leaves of one channel. */
interface Lock {
  readonly semaphore: Semaphore.Semaphore
  /** Effects that hold the lock or wait for it. */
  users: number
}

export class ChannelMemberships<Link> {
  readonly #byName = new Map<string, ChannelMembership<Link>>()
  /** Buckets by channel, kept after a leave, so that joining again does not refill a bucket. */
  readonly #buckets = new Map<string, Buckets>()
  readonly #locks = new Map<string, Lock>()

  get size(): number {
    return this.#byName.size
  }

  get links(): ReadonlyArray<Link> {
    return Array.from(this.#byName.values(), ({ link }) => link)
  }

  /** Ends the calls whose other members see the connection's address, one after the other. */
  get endDirectCalls(): Effect.Effect<void> {
    const ends = Array.from(this.#byName.values(), ({ voice }) => voice.endDirect)
    return Effect.forEach(ends, (end) => end, { discard: true })
  }

  /** Names of the channels whose voice calls the connection may be in. */
  get withVoice(): ReadonlyArray<string> {
    return Array.from(this.#byName).flatMap(([name, membership]) =>
      membership.voice.hasAsked ? [name] : []
    )
  }

  has(name: string): boolean {
    return this.#byName.has(name)
  }

  get(name: string): ChannelMembership<Link> | undefined {
    return this.#byName.get(name)
  }

  add(name: string, link: Link, now: number): ChannelMembership<Link> {
    const membership = { link, ...this.#bucketsFor(name, now), voice: new VoiceMembership() }
    this.#byName.set(name, membership)
    return membership
  }

  /** Removes a membership, unless the connection has asked for the channel again since. */
  remove(name: string, membership: ChannelMembership<Link> | undefined): void {
    if (this.#byName.get(name) === membership) this.#byName.delete(name)
  }

  /** Removes all memberships; returns their links. */
  removeAll(): ReadonlyArray<Link> {
    const links = this.links
    this.#byName.clear()
    return links
  }

  /** Runs joins and leaves of a channel one after the other, in the order of their frames. */
  exclusively<A, E, R>(name: string, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return Effect.suspend(() => {
      const lock = this.#locks.get(name) ?? { semaphore: Semaphore.makeUnsafe(1), users: 0 }
      lock.users += 1
      this.#locks.set(name, lock)
      const done = Effect.sync(() => {
        lock.users -= 1
        if (lock.users === 0) this.#locks.delete(name)
      })
      return Effect.ensuring(lock.semaphore.withPermits(1)(effect), done)
    })
  }

  /** The buckets of a channel. Beyond the bound, forgets the channel that was joined longest ago. */
  #bucketsFor(name: string, now: number): Buckets {
    const buckets = this.#buckets
    const known = buckets.get(name) ?? {
      bucket: new FrameBucket(now, channelLimits.messagesPerSecond, channelLimits.messagesBurst),
      voiceBucket: new FrameBucket(now, voiceFrames.framesPerSecond, voiceFrames.framesBurst)
    }
    buckets.delete(name)
    buckets.set(name, known)
    const [oldest] = buckets.keys()
    if (buckets.size > channelLimits.rateLimitersPerConnection && oldest !== undefined)
      buckets.delete(oldest)
    return known
  }
}
