/** Rights in a room: what its mode permits, and what players have done with that. */
import type { VoteOp } from "#rpc/config-document/authority"

/** A vote that the mode permits. */
export interface VoteRule {
  readonly op: string
  readonly share: number
  readonly minVoters: number
  readonly seconds: number
  readonly cooldownSeconds: number
}

/** A team of the mode: the slots that it has, and those that a match fills at least. */
export interface TeamSlots {
  readonly key: string
  readonly min: number
  readonly max: number
}

/** The open vote. */
export interface Vote {
  readonly id: string
  readonly op: VoteOp
  readonly starterId: string
  readonly targetId: string | null
  /** The voters, fixed at the start; null for one who has not voted. */
  readonly ballots: ReadonlyMap<string, boolean | null>
  readonly needed: number
  /** Unix milliseconds. */
  readonly endsAt: number
  /** Length of the rest after the vote. */
  readonly restMillis: number
}

/** Time after a vote in which its starter starts no other, and nobody starts one against its target. */
export interface VoteRest {
  readonly op: VoteOp
  readonly starterId: string
  readonly targetId: string | null
  /** Unix milliseconds. */
  readonly until: number
}

export interface Rights {
  /**
   * Players whom the room has removed, and the ends of their bars, Unix milliseconds; null for the room's
   * life. The oldest first.
   */
  readonly bars: ReadonlyMap<string, number | null>
  /** Players whose messages are hidden, also while they are not in the room. */
  readonly muted: ReadonlySet<string>
  readonly vote: Vote | null
  readonly votesHeld: number
  readonly rests: ReadonlyArray<VoteRest>
}

/** The rights of a room in which nobody has used any. */
export const noRights: Rights = {
  bars: new Map(),
  muted: new Set(),
  vote: null,
  votesHeld: 0,
  rests: []
}
