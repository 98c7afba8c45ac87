/**
 * A channel as those who come in get it, as text. The list of members is by far the largest part of
 * it, and many may come in at once: a member is encoded once, the list once a change, and all who may
 * do the same get the same text.
 */
import { HashMap } from "effect"
import type { ChannelEvent } from "#rpc/channels"
import type { CodedError } from "#rpc/errors/codes"
import type { Attachment, ChannelState, Member } from "./model.ts"
import { memberOf, membersOf, playerView, selfOf, settingsView } from "./model.ts"
import type { ChannelOutput, PresentMember } from "./messages.ts"

const texts = new WeakMap<Member, string>()

const memberText = (member: Member): string => {
  const known = texts.get(member)
  if (known !== undefined) return known
  const text = JSON.stringify(playerView(member))
  texts.set(member, text)
  return text
}

type Self = ReturnType<typeof selfOf>

/** What an anonymous listener may do. */
const listening: Self = { canSend: false, mutedUntil: null }

/** A connection that comes in; without a player it is anonymous. */
export interface Entry extends Attachment {
  readonly playerId: string | null
}

interface Group {
  readonly frame: string
  readonly members: Array<Member>
  readonly listeners: Array<string>
}

/** Those to whom one text goes, by the text. */
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

  /** Lets these in, each with the channel as it is. Whoever has come in elsewhere since is not. */
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

  /** The channel as it is, for everyone on a node. */
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

  /** `channel_joined` for one who may do this. */
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

/** Why a member goes whom the channel does not take back after a move. */
const closeReasons = new Map<string, "banned" | "kicked">([
  ["channel_banned", "banned"],
  ["channel_forbidden", "kicked"]
])

/** What a member hears whom the channel does not take back. */
export const rejectedOutputs = (
  channel: string,
  { connectionId: connection, playerId }: PresentMember,
  { _tag: code }: CodedError
): ReadonlyArray<ChannelOutput> => {
  const exit = { kind: "exit", player: playerId, connection } as const
  // The player is on a newer connection elsewhere, and hears the channel there.
  if (code === "unavailable") return [exit]
  const reason = closeReasons.get(code) ?? "lost"
  const event: ChannelEvent = { t: "channel_closed", channel, reason }
  return [{ kind: "event", to: [playerId], listeners: false, frame: JSON.stringify(event) }, exit]
}
