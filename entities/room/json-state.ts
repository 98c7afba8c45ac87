/**
 * Size-limited JSON state that players write: the shared state of a room and the state of each player.
 * A patch is a shallow merge of top-level keys; null deletes a key. Entries are in a Map, so no key can
 * reach a prototype. Each entry keeps its size, so a patch costs only what it touches.
 */
import { Result } from "effect"
import { StateTooLarge } from "#rpc/errors/codes"
import type { JsonObject } from "#rpc/json"
import { roomLimits } from "#rpc/rooms/limits"
import { jsonBytes } from "../json-bytes.ts"

interface Entry {
  readonly value: unknown
  readonly bytes: number
}

/** JSON values by key; `bytes` is the size of the entries as UTF-8 JSON. */
export interface JsonState {
  readonly entries: ReadonlyMap<string, Entry>
  readonly bytes: number
}

export const emptyJsonState: JsonState = { entries: new Map(), bytes: 0 }

/** Bytes of the colon and the comma of an entry. */
const punctuationBytes = 2
/** Bytes of the braces, less the comma that the first entry does not have. */
const enclosingBytes = 1

const tooLarge = (limit: number, unit: StateTooLarge["details"]["unit"]) =>
  Result.fail(new StateTooLarge({ details: { limit, unit } }))

/** Applies a patch as a whole, or fails if the result exceeds a limit. */
export const patchJsonState = (
  state: JsonState,
  patch: JsonObject,
  maxBytes: number
): Result.Result<JsonState, StateTooLarge> => {
  const entries = new Map(state.entries)
  let bytes = state.bytes
  for (const [key, value] of Object.entries(patch)) {
    if (key.length > roomLimits.stateKeyMaxCharacters) {
      return tooLarge(roomLimits.stateKeyMaxCharacters, "keyCharacters")
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
  if (entries.size > roomLimits.stateKeysMax) return tooLarge(roomLimits.stateKeysMax, "keys")
  if (bytes + enclosingBytes > maxBytes) return tooLarge(maxBytes, "bytes")
  return Result.succeed({ entries, bytes })
}

/** The state as a JSON object. Every key, also `__proto__`, is an own property. */
export const toJsonObject = (state: JsonState): JsonObject =>
  Object.fromEntries(Array.from(state.entries, ([key, entry]) => [key, entry.value]))

/** Restores the state from a snapshot, without limits: they were checked when it was written. */
export const fromJsonObject = (json: JsonObject): JsonState =>
  Result.getOrElse(
    patchJsonState(emptyJsonState, json, Number.POSITIVE_INFINITY),
    () => emptyJsonState
  )
