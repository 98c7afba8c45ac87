/** Cloud saves of the signed-in player. */
import { Effect, type Schema } from "effect"
import type { Save, SaveItem } from "#rpc/saves"
import type { Http, SaveVersion } from "./http.ts"
import type { Tokens } from "./tokens.ts"

export interface Saves {
  /**
   * Lists the player's saves without their data, newest first. `size` is in bytes.
   *
   * @example
   * for (const { key, updatedAt } of await client.saves.list()) addSlot(key, updatedAt)
   */
  list(): Promise<ReadonlyArray<SaveItem>>

  /**
   * Reads a save; null if there is none.
   *
   * @example
   * const save = await client.saves.get("slot-1")
   * start(save?.data ?? newGame())
   */
  get(key: string): Promise<Save | null>

  /**
   * Writes a save of up to 1 MiB of JSON and returns its new version. With `ifVersion` it rejects with
   * `version_conflict` if another device has written since that version; 0 means that the save must not
   * exist. Rejects with `save_too_large`, `too_many_saves` or `storage_quota_exceeded`.
   *
   * @example
   * try {
   *   await client.saves.put("slot-1", data, { ifVersion: save.version })
   * } catch (error) {
   *   if (!isError(error, "version_conflict")) throw error
   *   await mergeWith(await client.saves.get("slot-1"))
   * }
   */
  put(key: string, data: Schema.Json, options?: SaveVersion): Promise<SaveItem>

  /**
   * Deletes a save, with `ifVersion` only at that version. Rejects with `save_not_found` or
   * `version_conflict`.
   *
   * @example
   * await client.saves.delete("slot-1")
   */
  delete(key: string, options?: SaveVersion): Promise<void>
}

type Run = <A, E>(effect: Effect.Effect<A, E>) => Promise<A>

export const makeSaves = (http: Http, tokens: Tokens, run: Run): Saves => ({
  list: () => run(Effect.map(tokens.authorized(http.listSaves), ({ saves }) => saves)),
  get: (key) =>
    run(
      Effect.catchTag(tokens.authorized(http.readSave(key)), "save_not_found", () =>
        Effect.succeed(null)
      )
    ),
  put: (key, data, options = {}) =>
    run(tokens.authorized(http.writeSave(key, { data, ...options }))),
  delete: (key, options = {}) =>
    run(Effect.asVoid(tokens.authorized(http.removeSave(key, options))))
})
