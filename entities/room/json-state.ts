/**
 * The values players write: the room's state and each player's own state (decisions 3.7.10). A patch
 * is a shallow merge of top-level keys, null deletes. Kept as Maps, so that no key of a player's can
 * reach a prototype; sizes are kept beside the values, so that a patch costs what it touches.
 */
import { Result } from "effect"
import { StateTooLarge } from "#rpc/errors/codes"
import { rooms } from "#rpc/limits"
import type { JsonObject } from "#rpc/rooms"

interface Entry {
  readonly value: unknown
  readonly bytes: number
}

/** A bounded set of JSON values by key; `bytes` is the size of their entries as UTF-8 JSON. */
export interface JsonState {
  readonly entries: ReadonlyMap<string, Entry>
  readonly bytes: number
}

export const emptyJsonState: JsonState = { entries: new Map(), bytes: 0 }

/** UTF-8 bytes of a value's JSON. */
export const jsonBytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value) ?? "")

/** The colon and the comma of an entry. */
const punctuationBytes = 2
/** The braces, less the comma that the first entry does without. */
const enclosingBytes = 1

const tooLarge = (limit: number, unit: StateTooLarge["details"]["unit"]) =>
  Result.fail(new StateTooLarge({ details: { limit, unit } }))

/** The values after a patch, or why it does not fit; on failure nothing is applied. */
export const patchJsonState = (
  values: JsonState,
  patch: JsonObject,
  maxBytes: number
): Result.Result<JsonState, StateTooLarge> => {
  const entries = new Map(values.entries)
  let bytes = values.bytes
  for (const [key, value] of Object.entries(patch)) {
    if (key.length > rooms.stateKeyMaxCharacters) {
      return tooLarge(rooms.stateKeyMaxCharacters, "keyCharacters")
    }
    bytes -= entries.get(key)?.bytes ?? 0
    if (value === null) {
      entries.delete(key)
    } else {
      const size = jsonBytes(value) + jsonBytes(key) + punctuationBytes
      entries.set(key, { value, bytes: size })
      bytes += size
    }
  }
  if (entries.size > rooms.stateKeysMax) return tooLarge(rooms.stateKeysMax, "keys")
  if (bytes + enclosingBytes > maxBytes) return tooLarge(maxBytes, "bytes")
  return Result.succeed({ entries, bytes })
}

/** The values as a JSON object. Keys are own properties whatever they are called. */
export const toJsonObject = (values: JsonState): JsonObject =>
  Object.fromEntries(Array.from(values.entries, ([key, entry]) => [key, entry.value]))

/** Values read back from a snapshot; what was within the limits once is kept. */
export const fromJsonObject = (json: JsonObject): JsonState =>
  Result.getOrElse(
    patchJsonState(emptyJsonState, json, Number.POSITIVE_INFINITY),
    () => emptyJsonState
  )
