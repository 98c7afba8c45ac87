/**
 * Ids of new rooms, near their players. The id of a room decides its shard, and with it its runner.
 * A node therefore varies a new id until it maps to a shard that the node owns. Messages of its
 * players to the room then cross to no other runner. Only the last 10 of 80 random bits vary, so
 * nobody can guess the id.
 */
import { Effect } from "effect"
import { EntityId, Sharding } from "effect/cluster"
import { newId, RoomId, variantsOf } from "#rpc/ids"
import { Room } from "#entities/room/protocol"

/** Room ids that a node tries until one maps to a shard of its own. */
export const idTriesMax = 256

/**
 * Generates the id of a room that lives on this node. A node that owns no shards or shuts down, or
 * that finds none within `idTriesMax`, uses any id.
 */
export const localRoomId = Effect.map(Sharding.Sharding, (sharding) => {
  const isLocal = (roomId: string): boolean => {
    const id = EntityId.make(roomId)
    return sharding.hasShardId(sharding.getShardId(id, Room.getShardGroup(id)))
  }
  return Effect.map(newId.room, (drawn) => {
    let tries = 0
    for (const variant of variantsOf(drawn)) {
      if (isLocal(variant)) return RoomId.make(variant)
      tries += 1
      if (tries >= idTriesMax) break
    }
    return drawn
  })
})
