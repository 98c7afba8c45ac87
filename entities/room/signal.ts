/**
 * Signals of peer-to-peer rooms: who may send them to whom, and what of them may be seen (decisions
 * 3.7.15). Where the sender or the receiver has to be relayed, every address that is not a relay's is
 * taken out of what is passed on, whatever the client put in: the other side never learns it.
 */
import { Result } from "effect"
import { P2pOnly, PlayerNotInRoom } from "#rpc/errors/codes"
import type { JsonObject, RoomEvent } from "#rpc/rooms"
import {
  type Decision,
  decided,
  isReachable,
  type Member,
  type RoomCommand,
  type RoomState
} from "./model.ts"

/** Has this member to be relayed, by the room's mode or for its own sake? */
const isRelayed = (state: RoomState, member: Member): boolean =>
  member.relayOnly || state.settings.p2p?.relayOnly === true

const candidateLine = /^[^\S\r\n]*(?:a=)?candidate:[^\r\n]*(?:\r\n|\r|\n|$)/gim
const relayType = /\styp\s+relay(?=\s|$)/i
const otherType = /\styp\s+(?!relay(?:\s|$))/i
const relatedAddress = /\s(raddr|rport)\s+\S+/gi

/** A relay's candidate without the address behind it; of any other, nothing. */
const relayedCandidate = (line: string): string =>
  relayType.test(line) && !otherType.test(line)
    ? line.replace(relatedAddress, (_, name: string) =>
        name.toLowerCase() === "raddr" ? " raddr 0.0.0.0" : " rport 0"
      )
    : ""

/** Lines of a session description that name the address of whoever made it (RFC 8866). */
const addressLine = /^(o=[^\r\n]*? IN|c=IN|a=rtcp:\d+ IN) IP[46] [^\r\n]*/gim

const isDescription = /^v=\d/m

const relayedText = (text: string): string => {
  const candidates = text.replace(candidateLine, relayedCandidate)
  return isDescription.test(text) ? candidates.replace(addressLine, "$1 IP4 0.0.0.0") : candidates
}

/** What a text holds as JSON, as many a game sends its candidates. */
const parsed = (text: string): unknown => {
  if (!/^\s*["[{]/.test(text)) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The data of a signal with every text in it relayed; `emptied` when a text was nothing else. */
const relayed = (data: unknown): { readonly data: unknown; readonly emptied: boolean } => {
  let emptied = false
  const walk = (value: unknown): unknown => {
    if (typeof value === "string") {
      const inner = parsed(value)
      if (inner !== undefined) return JSON.stringify(walk(inner))
      const text = relayedText(value)
      emptied ||= text === "" && value !== ""
      return text
    }
    if (Array.isArray(value)) return value.map(walk)
    if (typeof value !== "object" || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, walk(item)]))
  }
  return { data: walk(data), emptied }
}

/** Passes a signal on to one member; `delivered` is 1, or 0 when there was nobody or nothing. */
export const signal = (
  state: RoomState,
  sender: Member,
  command: Extract<RoomCommand, { t: "signal" }>
): Result.Result<Decision, P2pOnly | PlayerNotInRoom> => {
  if (state.settings.p2p === null) return Result.fail(new P2pOnly())
  const target = state.members.get(command.to)
  if (target === undefined) return Result.fail(new PlayerNotInRoom())
  const hidden = isRelayed(state, sender) || isRelayed(state, target)
  const shown = hidden ? relayed(command.data) : { data: command.data, emptied: false }
  // An emptied candidate would read as the end of candidates.
  if (!isReachable(target) || (shown.emptied && command.kind === "candidate")) {
    return decided(state, [], { delivered: 0 })
  }
  const event: RoomEvent = {
    t: "signal",
    from: sender.id,
    kind: command.kind,
    ...("data" in command ? { data: shown.data } : {}),
    ...(command.gen === undefined ? {} : { gen: command.gen })
  }
  return decided(state, [{ event, to: [target.id], except: null, membership: null }], {
    delivered: 1
  })
}

/** How a member's own connections are to be made. */
export const iceTransport = (
  state: RoomState,
  member: Member
): Result.Result<Decision, P2pOnly> => {
  if (state.settings.p2p === null) return Result.fail(new P2pOnly())
  const data: JsonObject = { iceTransportPolicy: isRelayed(state, member) ? "relay" : "all" }
  return decided(state, [], data)
}
