/**
 * Receivers of what one member of a room says to others. The sender learns nothing of what is withheld:
 * a member from whom a message is withheld counts as one who ignores it.
 */
import type { RoomEvent } from "#rpc/rooms/events"
import { reach } from "../reach.ts"
import { type Emission, isReachable, type Member, type RoomState } from "./model.ts"

/** A message to all others, or to the members in `to`. */
export interface Message {
  readonly type: string
  readonly data?: unknown
  readonly to?: ReadonlyArray<string>
}

export interface Recipients {
  /** The members who receive the message; null for all others but those in `without`. */
  readonly to: ReadonlyArray<string> | null
  readonly without: ReadonlyArray<string>
  /** Number of reachable members in the message's `to`, as the sender learns it. */
  readonly delivered: number
}

/** Whether the message is withheld from this member. */
const isWithheld = (sender: Member, receiver: Member): boolean => !reach(sender, receiver, "send")

/** Returns who receives a message of a member; nobody while the member is muted. */
export const recipients = (
  { members, rights }: RoomState,
  sender: Member,
  { to }: Message
): Recipients => {
  if (rights.muted.has(sender.id)) return { to: [], without: [], delivered: 0 }
  if (to === undefined) {
    const without: Array<string> = []
    for (const member of members.values()) {
      if (isWithheld(sender, member)) without.push(member.id)
    }
    return { to: null, without, delivered: 0 }
  }
  const addressed = Array.from(new Set(to)).flatMap((id) => {
    const member = members.get(id)
    return member !== undefined && isReachable(member) ? [member] : []
  })
  const receiving = addressed.filter((member) => !isWithheld(sender, member))
  return { to: receiving.map(({ id }) => id), without: [], delivered: addressed.length }
}

/** The emissions that bring an event to its recipients. */
export const deliveries = (
  event: RoomEvent,
  sender: Member,
  { to, without }: Recipients
): ReadonlyArray<Emission> => {
  if (to === null) return [{ event, to, except: sender.id, without, membership: null }]
  return to.length === 0 ? [] : [{ event, to, except: null, membership: null }]
}
