/**
 * Acts of rights as they travel to a room: in a `send` to nobody. A room on a runner of release 0.1 sends
 * that to nobody and does not confirm the act; it would not understand a command of its own. The next
 * release may send commands.
 */
import { Result, Schema } from "effect"
import { VoteOp } from "#rpc/config-document/authority"
import { InvalidFrame } from "#rpc/errors/codes"
import type { JsonObject } from "#rpc/json"
import { RoomModerateOp } from "#rpc/rooms/authority"
import { command } from "../messages.ts"
import type { PlayerCommand } from "./messages.ts"
import type { RoomCommand } from "./model.ts"

export const RoomAct = Schema.Union([
  command("moderate", {
    op: RoomModerateOp,
    target: Schema.String,
    team: Schema.optionalKey(Schema.String),
    reason: Schema.optionalKey(Schema.String)
  }),
  command("startVote", { op: VoteOp, target: Schema.optionalKey(Schema.String) }),
  command("castVote", { voteId: Schema.String, yes: Schema.Boolean }),
  command("setTeam", { team: Schema.String })
])
export type RoomAct = typeof RoomAct.Type

type Send = Extract<PlayerCommand, { t: "send" }>

/** The command that carries an act of a member. */
export const actCommand = (playerId: string, act: RoomAct): Send => ({
  t: "send",
  playerId,
  type: act.t,
  to: [],
  act
})

export const isAct = (input: PlayerCommand): input is Send =>
  input.t === "send" && input.act !== undefined

const decodeAct = Schema.decodeUnknownResult(RoomAct)

/** The command of an act; fails for an act that a newer release has added. */
export const commandOf = ({ act, playerId }: Send): Result.Result<RoomCommand, InvalidFrame> =>
  Result.mapBoth(decodeAct(act), {
    onFailure: () => InvalidFrame.at("t", "This room runs on an older release of the service"),
    onSuccess: (known) =>
      known.t === "moderate" ? { ...known, by: { playerId } } : { ...known, playerId }
  })

/** The data of the reply to an act: the room confirms it. */
export const confirmed = (data: JsonObject): JsonObject => ({ ...data, acted: true })

/** Whether the room has confirmed the act. */
export const isConfirmed = (data: JsonObject): boolean => data["acted"] === true
