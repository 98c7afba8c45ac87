/**
 * Cloud saves: a player's documents by key. Each write increments the version, so that a writer can
 * name the version it has read.
 *
 * The service returns `data` as the JSON text that it received. It keeps the order of keys,
 * duplicate keys, escapes and the digits of numbers, even those beyond a double. It removes only
 * white space between tokens. Nesting is limited to 64 levels.
 */
import { Schema, SchemaTransformation } from "effect"
import { HttpApiEndpoint } from "effect/http-api"
import {
  FeatureGate,
  KeepsBodyText,
  PlayerRate,
  PlayerToken,
  PublishableKey,
  Requests,
  RequiredFeature
} from "./auth.ts"
import {
  NotFound,
  SaveNotFound,
  SaveTooLarge,
  StorageQuotaExceeded,
  TooManySaves,
  VersionConflict,
  wire
} from "./errors/codes.ts"
import { feature, group, tag } from "./feature.ts"
import { forPlayer, keyParams, type PlayerMountParams, playerParams } from "./mounts.ts"
import { operation, type OperationFacts } from "./operations.ts"
import { Deleted } from "./responses.ts"
import { Timestamp } from "./text.ts"
import { MiB, GiB } from "./units.ts"

/** Cloud saves. `dataMaxBytes`, `perPlayer`, `guestBytes` and `environmentBytes` are defaults of settings. */
export const saveLimits = {
  dataMaxBytes: MiB,
  perPlayer: 100,
  /** Bytes of all saves of a guest. */
  guestBytes: 16 * MiB,
  /** Bytes of all saves of an environment. */
  environmentBytes: 50 * GiB,
  keyMaxCharacters: 64,
  /** Deleted saves of a player whose version is remembered, for at least a day. */
  deletedKept: 1000
} as const

/** Key of a save: 1 to 64 letters, digits, `_`, `.` and `-`; the first is a letter or digit. */
export const SaveKey = Schema.String.check(
  Schema.isPattern(
    new RegExp(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,${saveLimits.keyMaxCharacters - 1}}$`),
    {
      message: "Expected 1 to 64 letters, digits, _ . or -, the first a letter or digit"
    }
  )
)

/** The version that the writer has read; 0 means that no such save exists. */
const IfVersion = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/** The same in a query, where an empty value is not 0. */
const IfVersionText = Schema.String.check(
  Schema.isPattern(/^\d+$/, { message: "Expected the version of a save, or 0" })
).pipe(Schema.decodeTo(IfVersion, SchemaTransformation.numberFromString))

/** A save without its data. `size` is the bytes of `data` in UTF-8, `updatedAt` is ISO 8601 UTC. */
export const SaveItem = Schema.Struct({
  key: Schema.String,
  version: Schema.Int,
  size: Schema.Int,
  updatedAt: Timestamp
}).annotate({
  identifier: "SaveItem",
  description: "A save without its data. `size` is the bytes of `data` in UTF-8."
})
export type SaveItem = typeof SaveItem.Type

/** A save with its data. */
export const Save = Schema.Struct({ ...SaveItem.fields, data: Schema.Json }).annotate({
  identifier: "Save",
  description: "A save with its data."
})
export type Save = typeof Save.Type

/** Body of a write. Without `ifVersion` the last write wins. */
export const SavePut = Schema.Struct({
  data: Schema.Json,
  ifVersion: Schema.optionalKey(IfVersion)
})

const SaveList = Schema.Struct({ saves: Schema.Array(SaveItem) }).annotate({
  identifier: "SaveList",
  description: "The player's saves, newest first."
})

/** The operations of a server that acts for a player, for agents and functions. */
const operations = {
  list: { functions: true },
  read: {
    functions: true,
    tool: { name: "player_save_read", description: "Read a save of a player", effect: "reads" }
  },
  write: { functions: true },
  remove: { functions: true }
} as const satisfies Record<string, OperationFacts>

const savesOf = <Id extends string, P extends PlayerMountParams>(id: Id, params: P) =>
  group(id, "games", "Saves", "Versioned JSON documents of the signed-in player.")
    .add(
      HttpApiEndpoint.get("list", "/saves", {
        params,
        success: SaveList
      }).annotateMerge(operation("List the player's saves, newest first", operations.list)),
      HttpApiEndpoint.get("read", "/saves/:key", {
        params: { ...params, key: SaveKey },
        success: Save,
        error: wire(SaveNotFound)
      }).annotateMerge(operation("Read a save with its data", operations.read)),
      HttpApiEndpoint.put("write", "/saves/:key", {
        params: { ...params, key: SaveKey },
        payload: SavePut,
        success: SaveItem,
        error: [
          wire(VersionConflict),
          wire(SaveTooLarge),
          wire(TooManySaves),
          wire(StorageQuotaExceeded),
          wire(NotFound)
        ]
      })
        .annotateMerge(
          operation("Write a save, optionally only if its version is unchanged", operations.write)
        )
        .annotate(KeepsBodyText, true)
        .annotate(PlayerRate, { burst: 60, seconds: 60, name: "save" }),
      HttpApiEndpoint.delete("remove", "/saves/:key", {
        params: { ...params, key: SaveKey },
        query: {
          ifVersion: Schema.optionalKey(IfVersionText)
        },
        success: Deleted,
        error: [wire(SaveNotFound), wire(VersionConflict)]
      }).annotateMerge(
        operation("Delete a save, optionally only if its version is unchanged", operations.remove)
      )
    )
    .annotateEndpoints(RequiredFeature, "saves")

/** `/v1/saves`: the signed-in player's saves. */
export class SavesApi extends savesOf("saves", keyParams)
  .prefix("/v1")
  .middleware(Requests)
  .middleware(FeatureGate)
  .middleware(PlayerToken)
  .middleware(PublishableKey) {}

/** `/v1/admin/players/:playerId/saves`: the saves of any player, for your server and for functions. */
export class PlayerSavesApi extends forPlayer(savesOf("playerSaves", playerParams)).annotateMerge(
  tag(
    "server",
    "Saves of players",
    "Saves of any player, without the rate limits of players. For your own server, with the environment's secret key."
  )
) {}

export const savesFeature = feature({
  word: "saves",
  groups: [SavesApi, PlayerSavesApi],
  exported: {
    saves: Schema.Array(Save)
  }
})
