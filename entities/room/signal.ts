/**
 * Signals of peer-to-peer rooms. If the sender or the receiver needs a relay, the room removes
 * every non-relay address from the signal. So the other side never learns an address, even if the
 * client sends one.
 */
import { Result } from "effect"
import { P2pOnly, PlayerNotInRoom } from "#rpc/errors/codes"
import type { JsonObject } from "#rpc/json"
import type { RoomEvent } from "#rpc/rooms/events"
import { reach } from "../reach.ts"
import { relayed } from "../relayed-signal.ts"
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
  // As if the other side ignored it: the sender learns of no block.
  if (!reach(sender, target, "send")) return decided(state, [], { delivered: 1 })
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
