/**
 * State machine of an entity link: which attachment it has, which activation of the entity it follows,
 * and when it attaches again. Pure: `entity-link.ts` opens streams, sends calls and sleeps.
 *
 * ```
 * waiting --open--> attaching --first batch--> attached --other epoch, failed call--> moved
 *    ^                  |                          |                                    |
 *    +------------------+---------- close ---------+------------------------------------+
 * ```
 *
 * `end` leads from every state to `ended`, which is final.
 */
import type { CodedError } from "#rpc/errors/codes"

interface Progress {
  /** The newest activation of the entity that the link has attached to; 0 before the first. */
  readonly epoch: number
  /** The newest attachment of this link; 0 before the first. Unique on the node. */
  readonly attachment: number
  /**
   * Number of calls with commands that the link has begun; the entity ignores a number it has seen.
   */
  readonly calls: number
}

export interface Waiting extends Progress {
  readonly tag: "waiting"
}

export interface Attaching extends Progress {
  readonly tag: "attaching"
}

export interface Attached extends Progress {
  readonly tag: "attached"
  /** Whether a call with commands is under way; the next one waits for it. */
  readonly calling: boolean
}

/** State after the end of the attachment, while its stream closes. */
export interface Moved extends Progress {
  readonly tag: "moved"
}

export interface Ended extends Progress {
  readonly tag: "ended"
  readonly error: CodedError
}

export type LinkState = Waiting | Attaching | Attached | Moved | Ended

export const initialState: Waiting = { tag: "waiting", epoch: 0, attachment: 0, calls: 0 }

const progressOf = ({ attachment, calls, epoch }: LinkState): Progress => ({
  epoch,
  attachment,
  calls
})

/** Opens a stream under a new attachment number. */
export const open = (state: LinkState, attachment: number): LinkState =>
  state.tag === "ended" ? state : { ...progressOf(state), tag: "attaching", attachment }

/**
 * Applies the epoch of a batch. The first batch of a stream is empty and completes the attachment.
 * A batch of a newer activation ends the attachment: that activation does not know yet the players
 * of this node.
 */
export const receive = (state: LinkState, epoch: number, isEmpty: boolean): LinkState => {
  if (epoch < state.epoch) return state
  if (state.tag === "attaching" && isEmpty) {
    return { ...progressOf(state), tag: "attached", epoch, calling: false }
  }
  return state.tag === "attached" && epoch !== state.epoch ? leave(state) : state
}

/** Ends the attachment, if there is one: commands may have been lost. */
export const leave = (state: LinkState): LinkState =>
  state.tag === "attached" ? { ...progressOf(state), tag: "moved" } : state

/**
 * Starts a call with commands, numbered by `calls` of the new state. There is no second one at a
 * time.
 */
export const beginCall = (state: LinkState): LinkState =>
  state.tag === "attached" && !state.calling
    ? { ...state, calls: state.calls + 1, calling: true }
    : state

/** Whether this call is the one under way. Calls of an earlier attachment are ignored. */
export const isCurrentCall = (state: LinkState, call: number): boolean =>
  state.tag === "attached" && state.calling && state.calls === call

/** Completes the call under way. */
export const completeCall = (state: LinkState, call: number): LinkState =>
  state.tag === "attached" && isCurrentCall(state, call) ? { ...state, calling: false } : state

/**
 * Applies the failure of the call under way: it ends the attachment, since its commands may not
 * have arrived.
 */
export const failCall = (state: LinkState, call: number): LinkState =>
  isCurrentCall(state, call) ? leave(state) : state

/** Applies the end of the stream. */
export const close = (state: LinkState): LinkState =>
  state.tag === "ended" ? state : { ...progressOf(state), tag: "waiting" }

/** Ends the link for good; the first error stays. */
export const end = (state: LinkState, error: CodedError): LinkState =>
  state.tag === "ended" ? state : { ...progressOf(state), tag: "ended", error }

/** Whether the stream that is now closing has been attached. */
export const wasAttached = ({ tag }: LinkState): boolean => tag === "attached" || tag === "moved"

const backOffMillis = 20
const backOffMaxMillis = 500
/**
 * Growth of the delay, small enough that the link finds a recovered entity after at most a third
 * more of its absence.
 */
const backOffFactor = 1.5
const backOffSteps = 8
/**
 * Time for which an entity may be missing. It is longer than a statement without a reply takes to
 * fail.
 */
const missingMillis = 6000
/**
 * Time for which commands wait for an unreachable entity. It is longer than the rooms of a frozen
 * runner need after their links have closed. With the two seconds until links close, it is shorter
 * than a client waits for a reply.
 */
const unreachableMillis = 6000
/** Time in which the entity has to accept an attachment before the link tries again. */
const attachMaxMillis = 3000

/** Errors that say that the entity does not exist. */
const gone: ReadonlySet<string> = new Set(["room_not_found", "channel_not_found"])
/** The error of an entity that existed and whose last state may still be written. */
const missing = "room_missing"

/** State of the link between two streams. */
export interface Retry {
  /** Streams in a row that were not attached, up to a bound. */
  readonly attempts: number
  /** Time at which the link was last attached, or began, in monotonic milliseconds. */
  readonly attachedAt: number
  /** Start of the period in which every stream found the entity missing. */
  readonly missingSince: number | undefined
}

export const firstRetry = (now: number): Retry => ({
  attempts: 0,
  attachedAt: now,
  missingSince: undefined
})

/** Decision after the end of a stream. */
export type RetryDecision =
  /** Decision for an entity that is gone: the link ends. */
  | { readonly tag: "lost"; readonly error: CodedError }
  | {
      readonly tag: "retry"
      readonly delayMillis: number
      /**
       * Whether commands have waited long enough for an unreachable entity, so that the link fails
       * them.
       */
      readonly failsCommands: boolean
      readonly retry: Retry
    }

/**
 * Returns the time that the next stream may take to be attached. Commands that wait do not wait
 * longer for it.
 */
export const attachMillis = ({ attachedAt }: Retry, now: number): number => {
  const left = attachedAt + unreachableMillis - now
  return left > 0 ? Math.min(attachMaxMillis, left) : attachMaxMillis
}

/** Decides on the next step after the end of a stream. */
export const afterStream = (
  before: Retry,
  stream: {
    readonly wasAttached: boolean
    readonly error: CodedError | undefined
    readonly now: number
  }
): RetryDecision => {
  const { error, now } = stream
  const { attachedAt, attempts } = stream.wasAttached ? firstRetry(now) : before
  const missingSince = error?._tag === missing ? (before.missingSince ?? now) : undefined
  const isGivenUp = missingSince !== undefined && now - missingSince >= missingMillis
  if (error !== undefined && (isGivenUp || gone.has(error._tag))) return { tag: "lost", error }
  return {
    tag: "retry",
    delayMillis: Math.min(backOffMaxMillis, backOffMillis * backOffFactor ** attempts),
    failsCommands: missingSince === undefined && now - attachedAt >= unreachableMillis,
    retry: { attempts: Math.min(attempts + 1, backOffSteps), attachedAt, missingSince }
  }
}
