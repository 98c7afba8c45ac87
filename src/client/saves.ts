/** Cloud saves of the signed-in player. */
import { authorized } from "./authorized.ts"
import type { Module } from "./compose.ts"
import type { ListenerOptions, Unsubscribe } from "./emitter.ts"
import { isError } from "./errors.ts"
import { inPath } from "./path-values.ts"
import { type QueuedSave, SaveQueue, type SaveEvents } from "./save-queue.ts"
import type { Save, SaveItem } from "./wire.ts"

/** The expected version of a save; 0: it must not exist. */
export interface SaveVersion {
  readonly ifVersion?: number
}

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
  put(key: string, data: unknown, options?: SaveVersion): Promise<SaveItem>

  /**
   * Deletes a save, with `ifVersion` only at that version. Rejects with `save_not_found` or
   * `version_conflict`.
   *
   * @example
   * await client.saves.delete("slot-1")
   */
  delete(key: string, options?: SaveVersion): Promise<void>

  /**
   * Stores a save on this device and writes it as soon as the service can be reached, also after a
   * reload. A newer save of the key replaces the waiting one, and the last write wins over those of
   * other devices. Offline it needs a stored session. Up to 32 saves wait, 2 Mi characters together;
   * further ones, and those that the device's storage refuses, reject with `overloaded`.
   *
   * @example
   * await client.saves.enqueue("slot-1", data)
   */
  enqueue(key: string, data: unknown): Promise<void>

  /**
   * Returns the player's waiting saves, oldest first.
   *
   * @example
   * const waiting = (await client.saves.queued()).find(({ key }) => key === "slot-1")
   * start(waiting === undefined ? (await client.saves.get("slot-1"))?.data : waiting.data)
   */
  queued(): Promise<ReadonlyArray<QueuedSave>>

  /**
   * Adds a listener for queued saves and returns a function that removes it, as does aborting the
   * option `signal`.
   *
   * @example
   * client.saves.on("saved", ({ key }) => show(`${key} is safe`))
   * client.saves.on("refused", ({ key, error }) => show(`${key}: ${error.message}`))
   */
  on<Name extends keyof SaveEvents>(
    name: Name,
    listener: (event: SaveEvents[Name]) => void,
    options?: ListenerOptions
  ): Unsubscribe
}

export const saves: Module<Saves> = (core) => {
  const { http, tokens } = core
  const queue = new SaveQueue(core)
  return {
    list: async () => {
      const { saves } = await authorized(tokens, (token) =>
        http.request("GET /v1/saves", { token })
      )
      return saves
    },
    get: async (key) => {
      try {
        return await authorized(tokens, (token) =>
          http.request("GET /v1/saves/{key}", { token, params: inPath({ key }) })
        )
      } catch (error) {
        if (isError(error, "save_not_found")) return null
        throw error
      }
    },
    put: (key, data, options = {}) => {
      const input = { params: inPath({ key }), body: { data, ...options } }
      return authorized(tokens, (token) => http.request("PUT /v1/saves/{key}", { token, ...input }))
    },
    delete: async (key, options = {}) => {
      const input = { params: inPath({ key }), query: options }
      await authorized(tokens, (token) =>
        http.request("DELETE /v1/saves/{key}", { token, ...input })
      )
    },
    enqueue: (key, data) => queue.add(key, data),
    queued: () => queue.list(),
    on: queue.events.on
  }
}
