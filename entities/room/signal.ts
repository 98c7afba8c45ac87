/**
 * Signals of peer-to-peer rooms. If the sender or the receiver needs a relay, the room removes every
 * non-relay address from the signal. So the other side never learns an address, whatever the client
 * sends.
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

/** Whether peers may reach this member through a relay only, by mode or age band. */
const isRelayed = (state: RoomState, member: Member): boolean =>
  member.relayOnly || state.settings.p2p?.relayOnly === true

const candidateLine = /^[^\S\r\n]*(?:a=)?candidate:[^\r\n]*(?:\r\n|\r|\n|$)/gim
const relayType = /\styp\s+relay(?=\s|$)/i
const otherType = /\styp\s+(?!relay(?:\s|$))/i
const relatedAddress = /\s(raddr|rport)\s+\S+/gi

/** A relay candidate without its related address; any other candidate becomes empty. */
const relayedCandidate = (line: string): string =>
  relayType.test(line) && !otherType.test(line)
    ? line.replace(relatedAddress, (_, name: string) =>
        name.toLowerCase() === "raddr" ? " raddr 0.0.0.0" : " rport 0"
      )
    : ""

/** Lines of a session description (RFC 8866) that contain its author's address. */
const addressLine = /^(o=[^\r\n]*? IN|c=IN|a=rtcp:\d+ IN) IP[46] [^\r\n]*/gim

const isDescription = /^v=\d/m

const relayedText = (text: string): string => {
  const candidates = text.replace(candidateLine, relayedCandidate)
  return isDescription.test(text) ? candidates.replace(addressLine, "$1 IP4 0.0.0.0") : candidates
}

/** Parses a text as JSON, because many games send their candidates as JSON texts. */
const parsed = (text: string): unknown => {
  if (!/^\s*["[{]/.test(text)) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Removes non-relay addresses from all texts; `emptied` if nothing else was in one of them. */
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

/** Sends a signal to one member; `delivered` is 0 if it is not reachable or nothing is left. */
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
  // Clients would read an empty candidate as the end of candidates.
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

/** Returns the ICE transport policy for a member's own connections. */
export const iceTransport = (
  state: RoomState,
  member: Member
): Result.Result<Decision, P2pOnly> => {
  if (state.settings.p2p === null) return Result.fail(new P2pOnly())
  const data: JsonObject = { iceTransportPolicy: isRelayed(state, member) ? "relay" : "all" }
  return decided(state, [], data)
}
