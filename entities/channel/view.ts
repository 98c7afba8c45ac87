/**
 * Snapshot texts of a channel. The member list is by far the largest part, and many connections may
 * join at once. So the channel encodes a member once and the list once per change, and all
 * connections with equal permissions share one text.
 */
import { HashMap } from "effect"
import type { ChannelCloseReason, ChannelEvent } from "#rpc/channels/frames"
import type { CodedError } from "#rpc/errors/codes"
import type { Attachment, ChannelState, Member } from "./model.ts"
import { memberOf, membersOf, playerView, selfOf, settingsView } from "./model.ts"
import type { ChannelOutput, PresentMember } from "./messages.ts"
import type { RemovalReason } from "./removals.ts"

const texts = new WeakMap<Member, string>()

const memberText = (member: Member): string => {
  const known = texts.get(member)
  if (known !== undefined) return known
  const text = JSON.stringify(playerView(member))
  texts.set(member, text)
  return text
}

type Self = ReturnType<typeof selfOf>

/** Permissions of an anonymous listener. */
const listening: Self = { canSend: false, mutedUntil: null }

/** A connection that joins; without a player it is anonymous. */
export interface Entry extends Attachment {
  readonly playerId: string | null
}

/** The entry of a connection; a null player is an anonymous listener. */
export const entryOf = ({ connectionId, node }: Attachment, playerId: string | null): Entry => ({
  node,
  connectionId,
  playerId
})

interface Group {
  readonly frame: string
  readonly members: Array<Member>
  readonly listeners: Array<string>
}

/** Receivers grouped by snapshot text. */
class Groups extends Map<string, Group> {
  of(frame: string): Group {
    const group = this.get(frame) ?? { frame, members: [], listeners: [] }
    this.set(frame, group)
    return group
  }
}

export class ChannelView {
  #state: ChannelState | undefined
  #head = ""

  /** Returns the `enter` outputs of joins; skips members that are on a newer connection by now. */
  enter(
    state: ChannelState,
    entries: ReadonlyArray<Entry>,
    now: number
  ): ReadonlyArray<ChannelOutput> {
    const groups = new Groups()
    for (const { connectionId, playerId } of entries) {
      const member = playerId === null ? undefined : memberOf(state, playerId)
      if (playerId === null) {
        groups.of(this.#joined(state, listening)).listeners.push(connectionId)
      } else if (member?.attachment?.connectionId === connectionId) {
        groups.of(this.#joined(state, selfOf(state, playerId, now))).members.push(member)
      }
    }
    return Array.from(groups.values(), ({ frame, listeners, members }) => ({
      kind: "enter",
      frame,
      listeners,
      players: members.map(({ attachment, id, joinedAt }) => ({
        player: id,
        connection: attachment?.connectionId ?? "",
        joinedAt
      }))
    }))
  }

  /** Returns snapshots for all members and listeners of a node. */
  snapshots(state: ChannelState, node: string, now: number): ReadonlyArray<ChannelOutput> {
    const groups = new Groups()
    for (const member of HashMap.values(state.members)) {
      if (member.attachment?.node !== node) continue
      groups.of(this.#joined(state, selfOf(state, member.id, now))).members.push(member)
    }
    const forListeners = this.#joined(state, listening)
    if (state.listeners.has(node)) groups.of(forListeners)
    return Array.from(groups.values(), ({ frame, members }) => ({
      kind: "event",
      frame,
      to: members.map(({ id }) => id),
      listeners: frame === forListeners
    }))
  }

  /** The text of `channel_joined` with these permissions. */
  #joined(state: ChannelState, { canSend, mutedUntil }: Self): string {
    const rest = JSON.stringify({ voice: state.options.voice, canSend, mutedUntil })
    return `${this.#opening(state)},${rest.slice(1)}`
  }

  #opening(state: ChannelState): string {
    const known = this.#state
    if (known?.members === state.members && known.options === state.options) return this.#head
    const channel = JSON.stringify(settingsView(state.options))
    const members = membersOf(state).map(memberText).join(",")
    this.#state = state
    this.#head = `{"t":"channel_joined","channel":${channel},"members":[${members}]`
    return this.#head
  }
}

/** Close reason by the error that rejects a returning member. */
const closeReasons = new Map<string, "banned" | "kicked">([
  ["channel_banned", "banned"],
  ["channel_forbidden", "kicked"]
])

const exitOf = ({ connectionId: connection, playerId }: PresentMember): ChannelOutput => ({
  kind: "exit",
  player: playerId,
  connection
})

const closedFor = (
  channel: string,
  member: PresentMember,
  reason: ChannelCloseReason
): ReadonlyArray<ChannelOutput> => {
  const event: ChannelEvent = { t: "channel_closed", channel, reason }
  const frame = JSON.stringify(event)
  return [{ kind: "event", to: [member.playerId], listeners: false, frame }, exitOf(member)]
}

/** Outputs for a member that the channel rejects after a move. */
export const rejectedOutputs = (
  channel: string,
  member: PresentMember,
  { _tag: code }: CodedError
): ReadonlyArray<ChannelOutput> =>
  // The player is on a newer connection elsewhere and receives events there.
  code === "unavailable"
    ? [exitOf(member)]
    : closedFor(channel, member, closeReasons.get(code) ?? "lost")

/** Outputs for a member whose node has missed its removal. */
export const removedOutputs = (
  channel: string,
  member: PresentMember,
  reason: RemovalReason
): ReadonlyArray<ChannelOutput> =>
  closedFor(channel, member, reason === "banned" ? "banned" : "kicked")
