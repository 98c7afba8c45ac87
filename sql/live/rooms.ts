/** The row of one live room with its snapshot, at most a second old. */
import { Context, Effect, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { EnvironmentId, RoomId } from "#rpc/ids"
import { orDieWithTimeout } from "../database.ts"

const OneRoom = Schema.Struct({ environmentId: EnvironmentId, roomId: RoomId })

/** A room; `snapshot` is JSON text in the format of the room entity, `node` the process that has it. */
const LiveRoomRow = Schema.Struct({ node: Schema.String, snapshot: Schema.String })

/** Repository of single rows of `rooms`, for the live view. */
export class LiveRoomRepository extends Context.Service<LiveRoomRepository>()(
  "sql/live/rooms/LiveRoomRepository",
  {
    make: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const find = SqlSchema.findAll({
        Request: OneRoom,
        Result: LiveRoomRow,
        execute: ({ environmentId, roomId }) => sql`
          select node, snapshot from rooms
          where environment_id = ${environmentId} and id = ${roomId}`
      })
      return {
        find: (room: typeof OneRoom.Type) =>
          Effect.map(orDieWithTimeout(find(room)), ([row]) => Option.fromUndefinedOr(row))
      }
    })
  }
) {
  static readonly layer = Layer.effect(LiveRoomRepository, this.make)
}
