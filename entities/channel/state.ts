/**
 * Channel state machine, pure: `(state, command, now) => Result<Decision, error>`.
 *
 * Invariants: a player is a member at most once; only unmanaged channels have an owner, who is a member
 * or has 30 seconds to join; a banned player is no member; events are emitted in the order of the
 * changes.
 */
import { HashMap, Result } from "effect"
import {
  Muted,
  NotInChannel,
  SendForbidden,
  type VoiceInUse,
  type VoiceTooLarge
} from "#rpc/errors/codes"
import type { ChannelChanges } from "#rpc/channels/frames"
import { absenceDeadline, disconnect, dropNode, expire, isOver } from "./absences.ts"
import { unreachedFrom } from "./delivery.ts"
import { join, listen, removeMembers, transferOwnership, withListeners } from "./membership.ts"
import {
  type ChannelCommand,
  type ChannelError,
  type ChannelState,
  type Decision,
  decided,
  type Emission,
  activeEntry,
  isoOrNull,
  memberOf,
  type MessageContent,
  selfOf,
  settingsView
} from "./model.ts"
import { endMutes, moderateAsOwner, selfChanges } from "./moderation.ts"
import type { GatewayCommand } from "./messages.ts"
import { withChanges } from "./options.ts"

const message = (
  state: ChannelState,
  from: string,
  command: MessageContent,
  now: number,
  without: ReadonlyArray<string> = []
): Result.Result<Decision, never> =>
  decided(state, [
    {
      kind: "all",
      without,
      event: {
        t: "channel_message",
        channel: state.options.name,
        from,
        type: command.type,
        ...("data" in command ? { data: command.data } : {}),
        at: now
      }
    }
  ])

const send = (
  state: ChannelState,
  command: Extract<ChannelCommand, { t: "send" }>,
  now: number
): Result.Result<Decision, NotInChannel | Muted | SendForbidden> => {
  const { playerId } = command
  if (memberOf(state, playerId) === undefined) return Result.fail(new NotInChannel())
  const muted = activeEntry(state.lists.muted, playerId, now)
  if (muted !== undefined) {
    return Result.fail(new Muted({ details: { until: isoOrNull(muted.until) } }))
  }
  if (!selfOf(state, playerId, now).canSend) return Result.fail(new SendForbidden())
  return message(state, playerId, command, now, unreachedFrom(state, playerId))
}

/** Applies changes of the server API. */
export const put = (
  state: ChannelState,
  changes: ChannelChanges,
  now: number
): Result.Result<Decision, VoiceInUse | VoiceTooLarge> =>
  Result.map(withChanges(state, changes), (next) => {
    const closed = { t: "channel_closed", channel: next.options.name, reason: "kicked" } as const
    const closesListeners: ReadonlyArray<Emission> =
      state.options.open && !next.options.open
        ? [{ kind: "listeners", event: closed }, { kind: "exitListeners" }]
        : []
    return {
      state: next.options.open ? next : { ...next, listeners: new Map() },
      emissions: [
        ...closesListeners,
        { kind: "all", event: { t: "channel_changed", channel: settingsView(next.options) } },
        ...selfChanges(state, next, HashMap.keys(state.members), now)
      ]
    }
  })

/** Reason in `channel_closed` by the reason of the removal. */
const removalReasons = { banned: "banned", deleted: "kicked" } as const

/** Removes a banned or deleted player. */
export const removePlayer = (
  state: ChannelState,
  playerId: string,
  reason: "banned" | "deleted",
  now: number
): Decision => {
  const member = memberOf(state, playerId)
  if (member === undefined) return { state, emissions: [] }
  return removeMembers(state, [member], reason, now, removalReasons[reason])
}

/** Adds the sending node to a command. */
export const withNode = (node: string, command: GatewayCommand): ChannelCommand =>
  command.t === "join" || command.t === "listen" || command.t === "listeners"
    ? { ...command, node }
    : command

/** Sends a message from the server. */
export const publish = (
  state: ChannelState,
  command: MessageContent,
  now: number
): Result.Result<Decision, never> => message(state, "server", command, now)

/** Removes all members. A managed channel keeps its options unless it is deleted. */
export const close = (
  state: ChannelState,
  reason: "deleted" | "feature_disabled" | "empty"
): Decision => ({
  state: {
    ...state,
    members: HashMap.empty(),
    blocks: new Map(),
    listeners: new Map(),
    graceAt: null,
    closed: reason === "feature_disabled" && state.options.managed ? null : reason
  },
  emissions: [
    { kind: "all", event: { t: "channel_closed", channel: state.options.name, reason } },
    { kind: "end" }
  ]
})

const tick = (state: ChannelState, now: number): Decision => {
  const expired = expire(state, now)
  const unmuted = endMutes(expired.state, now)
  const transferred = isOver(state.ownerAway, state, now)
    ? transferOwnership({ ...unmuted.state, ownerAway: null }, now)
    : { state: unmuted.state, emissions: [] }
  const emissions = [...expired.emissions, ...unmuted.emissions, ...transferred.emissions]
  const { emptySince, members } = transferred.state
  if (!isOver(emptySince, transferred.state, now) || !HashMap.isEmpty(members)) {
    return { state: transferred.state, emissions }
  }
  const ended = close(transferred.state, "empty")
  return { state: ended.state, emissions: [...emissions, ...ended.emissions] }
}

/**
 * Time of the next deadline that `tick` handles, Unix milliseconds; infinite when there is none.
 */
export const nextDeadline = (state: ChannelState): number => {
  let next = absenceDeadline(state)
  for (const until of state.lists.muted.values()) next = Math.min(next, until ?? next)
  return next
}

/** Decides a command. */
export const decide = (
  state: ChannelState,
  command: ChannelCommand,
  now: number
): Result.Result<Decision, ChannelError> => {
  switch (command.t) {
    case "join":
      return join(state, command, now)
    case "leave": {
      const member = memberOf(state, command.playerId)
      const holder = member?.attachment?.connectionId ?? ""
      if (member === undefined || holder > command.connectionId) return decided(state)
      if (command.reason !== "left") {
        return Result.succeed(removePlayer(state, command.playerId, command.reason, now))
      }
      return Result.succeed(removeMembers(state, [member], command.reason, now, null))
    }
    case "send":
      return send(state, command, now)
    case "moderate":
      return moderateAsOwner(state, command, now)
    case "disconnect":
      return disconnect(state, command, now)
    case "restrict": {
      const member = memberOf(state, command.playerId)
      if (member === undefined || state.options.managed) return decided(state)
      return Result.succeed(removeMembers(state, [member], "kicked", now, "kicked"))
    }
    case "listen":
      return listen(state, command)
    case "listeners":
      return decided(withListeners(state, command.node, command.listeners))
    case "dropNode":
      return dropNode(state, command.node, now)
    case "tick":
      return Result.succeed(tick(state, now))
  }
}
