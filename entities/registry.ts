/** All entities of the service: one line each. Their layers and readings are collected from here. */
import { Effect, Layer } from "effect"
import { channel } from "./channel/definition.ts"
import { matchmakingQueue } from "./matchmaking-queue/definition.ts"
import { playerSessions } from "./player-session/definition.ts"
import { room } from "./room/definition.ts"
import { voiceSession } from "./voice-session/definition.ts"

const entities = [channel, matchmakingQueue, playerSessions, room, voiceSession] as const

const layersOf = <
  K extends "local" | "behaviour",
  const E extends ReadonlyArray<Readonly<Record<K, Layer.Any>>>
>(
  all: E,
  kind: K
) => all.map((entity) => entity[kind]) as { -readonly [I in keyof E]: E[I][K] }

/** What lives on a node, below the cluster. */
export const LocalEntities = Layer.mergeAll(...layersOf(entities, "local"))

/** The behaviour of all entities in the cluster. */
export const EntitiesLive = Layer.mergeAll(...layersOf(entities, "behaviour"))

/** All entities, as the service sees them on this node. */
export const entitiesOnNode = Effect.all(entities.map(({ onNode }) => onNode))

/** The registries of this node for the entities that have players as members. */
export const localGroups = Effect.map(entitiesOnNode, (all) =>
  all.flatMap(({ groups }) => (groups === undefined ? [] : [groups]))
)
