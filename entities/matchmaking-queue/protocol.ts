/** Calls and messages of the matchmaking queue. The entity id is `<environment id>/<mode>`. */
import { Schema } from "effect"
import { ClusterSchema, Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { Unavailable } from "#rpc/errors/codes"
import { batchOf, command, output } from "../messages.ts"
import { JoiningPlayerSchema, OpenRoom } from "../room/messages.ts"

/** Settings of a mode; the queue uses those of the newest config version. */
export const QueueSettings = Schema.Struct({
  configVersion: Schema.Int,
  minPlayers: Schema.Int,
  fillTimeoutSeconds: Schema.Int,
  room: OpenRoom
})
export type QueueSettings = typeof QueueSettings.Type

export const QueueCommand = Schema.Union([
  command("enqueue", {
    ticketId: Schema.String,
    joiningPlayer: JoiningPlayerSchema,
    settings: QueueSettings,
    /** The id of a room near the player, for the first match. Older versions do not send it. */
    roomId: Schema.optionalKey(Schema.String)
  }),
  command("cancel", { ticketId: Schema.String }),
  /** Reports that the settings of the mode have changed. */
  command("configure", { settings: QueueSettings })
])
export type QueueCommand = typeof QueueCommand.Type

/** A command and the number of its reply; 0 for none. */
export const QueueInput = Schema.Struct({ seq: Schema.Int, command: QueueCommand })
export type QueueInput = typeof QueueInput.Type

/** A message from a queue to one node. */
export const QueueOutput = Schema.Union([
  output("matched", { ticketId: Schema.String, roomId: Schema.String }),
  output("full", { ticketId: Schema.String }),
  output("cancelled", { seq: Schema.Int, cancelled: Schema.Boolean })
])
export type QueueOutput = typeof QueueOutput.Type

export const QueueBatch = batchOf(QueueOutput)
export type QueueBatch = typeof QueueBatch.Type

export const MatchmakingQueue = Entity.make("MatchmakingQueue", [
  Rpc.make("Input", {
    payload: {
      node: Schema.String,
      /** The attachment through which the node sends; an older release does not name it. */
      watch: Schema.optionalKey(Schema.Int),
      inputs: Schema.fromJsonString(Schema.Array(QueueInput))
    },
    error: Schema.Union([Unavailable])
  }),
  /**
   * Attaches a node and streams its matches. When the stream ends, the queue drops the node's
   * tickets.
   */
  Rpc.make("Watch", {
    payload: { node: Schema.String, watch: Schema.optionalKey(Schema.Int) },
    success: QueueBatch,
    error: Schema.Union([Unavailable]),
    stream: true
  }).annotate(ClusterSchema.InterruptOnTermination, true)
])

/** The entity id of a mode's queue. */
export const queueId = (environmentId: string, mode: string): string => `${environmentId}/${mode}`
