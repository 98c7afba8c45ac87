/**
 * Cloud saves (spec section 4.3, decisions 3.4.1-3): a player's own documents by key, each with a
 * version that grows by one with every write, so that a writer can say which one it has read.
 *
 * `data` is any JSON text and comes back as the text that it was: the order of keys, the digits of
 * numbers (also those that no double holds) and escapes; only white space between tokens is dropped.
 * Of two members of one name both are kept, as they are in the text. Nesting goes 64 levels deep.
 */
import { Schema, SchemaTransformation } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { FeatureGate, PlayerToken, PublishableKey, Requests, RequiredFeature } from "./auth.ts"
import {
  NotFound,
  SaveNotFound,
  SaveTooLarge,
  TooManySaves,
  VersionConflict,
  wire
} from "./errors/codes.ts"
import { saves } from "./limits.ts"

/** The name of a save: 1 to 64 letters, digits, `_`, `.` and `-`; the first a letter or digit. */
export const SaveKey = Schema.String.check(
  Schema.isPattern(new RegExp(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,${saves.keyMaxCharacters - 1}}$`), {
    message: "Expected 1 to 64 letters, digits, _ . or -, the first a letter or digit"
  })
)

/** The version that a writer has read; 0 says that there must be no such save. */
const IfVersion = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/** The same in a query, where nothing is not 0. */
const IfVersionText = Schema.String.check(Schema.isPattern(/^\d+$/)).pipe(
  Schema.decodeTo(IfVersion, SchemaTransformation.numberFromString)
)

/** A save without its data. `size` is bytes of `data` in UTF-8, `updatedAt` ISO 8601 UTC. */
export const SaveItem = Schema.Struct({
  key: Schema.String,
  version: Schema.Int,
  size: Schema.Int,
  updatedAt: Schema.String
})
export type SaveItem = typeof SaveItem.Type

/** A save. */
export const Save = Schema.Struct({ ...SaveItem.fields, data: Schema.Json })
export type Save = typeof Save.Type

/** The body of a write. Without `ifVersion` the last writer wins. */
export const SavePut = Schema.Struct({
  data: Schema.Json,
  ifVersion: Schema.optionalKey(IfVersion)
})

const params = { key: SaveKey }

/** `/v1/saves`: the signed-in player's saves. */
export class SavesApi extends HttpApiGroup.make("saves")
  .add(
    HttpApiEndpoint.get("list", "/saves", {
      success: Schema.Struct({ saves: Schema.Array(SaveItem) })
    }).annotate(OpenApi.Summary, "The player's saves, the one written last first"),
    HttpApiEndpoint.get("read", "/saves/:key", {
      params,
      success: Save,
      error: wire(SaveNotFound)
    }).annotate(OpenApi.Summary, "A save with its data"),
    HttpApiEndpoint.put("write", "/saves/:key", {
      params,
      payload: SavePut,
      success: SaveItem,
      error: [wire(VersionConflict), wire(SaveTooLarge), wire(TooManySaves), wire(NotFound)]
    }).annotate(OpenApi.Summary, "Write a save, if it still has the version that was read"),
    HttpApiEndpoint.delete("remove", "/saves/:key", {
      params,
      query: {
        ifVersion: Schema.optionalKey(IfVersionText)
      },
      success: Schema.Struct({ deleted: Schema.Literal(true) }),
      error: [wire(SaveNotFound), wire(VersionConflict)]
    }).annotate(OpenApi.Summary, "Delete a save, if it still has the version that was read")
  )
  .annotateEndpoints(RequiredFeature, "saves")
  .prefix("/v1")
  .middleware(Requests)
  .middleware(FeatureGate)
  .middleware(PlayerToken)
  .middleware(PublishableKey) {}
