/** The message between processes that asks for the end of the runner of a room. */
import { Schema } from "effect"
import { RoomId } from "#rpc/ids"

export const KillRunner = Schema.Struct({ killRunnerOf: RoomId })

/** Decodes the message, if it is one. */
export const decodeKillRunner = Schema.decodeUnknownOption(KillRunner)
