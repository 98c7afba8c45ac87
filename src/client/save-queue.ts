/**
 * Saves that wait on this device until the service takes them. They survive a reload, since they are in
 * the client's storage. A newer save of a key replaces the waiting one. Tabs share the queue.
 */
import { authorized } from "./authorized.ts"
import type { Core } from "./core.ts"
import { Emitter } from "./emitter.ts"
import { type AnyClientError, ClientError, isError } from "./errors.ts"
import { inPath } from "./path-values.ts"
import { onWindow } from "./page-listeners.ts"
import { withWebLock } from "./web-lock.ts"
import type { SaveItem } from "./wire.ts"

/** Bounds of the queue of a device, all players together. */
const maxSaves = 32
const maxCharacters = 2 * 1024 * 1024

const firstRetryMillis = 1000
const maxRetryMillis = 60_000

/** Errors after which the same request may succeed. */
const transientErrors: ReadonlySet<string> = new Set([
  "network_error",
  "timed_out",
  "unavailable",
  "internal_error",
  "rate_limited",
  "refresh_race",
  // Something between, such as a proxy or the sign-in page of a network, has answered.
  "unreadable_response"
])

/** Errors of the session. The save waits until its player signs in. */
const sessionErrors: ReadonlySet<string> = new Set([
  "signed_out",
  "session_revoked",
  "invalid_refresh_token",
  "player_banned"
])

/** A save that waits for the service. */
export interface QueuedSave {
  readonly key: string
  readonly data: unknown
}

interface Entry extends QueuedSave {
  readonly playerId: string
  /** Distinguishes the writes. */
  readonly id: string
}

/** Events of queued saves, in the tab that sent them. */
export interface SaveEvents {
  /** The service has stored a queued save. */
  readonly saved: SaveItem
  /** The service refused a queued save, which left the queue. */
  readonly refused: QueuedSave & { readonly error: AnyClientError }
}

const isSameSave = (entry: Entry, { key, playerId }: Entry): boolean =>
  entry.key === key && entry.playerId === playerId

const isFull = (entries: ReadonlyArray<Entry>): boolean =>
  entries.length > maxSaves || JSON.stringify(entries).length > maxCharacters

/** Drops the oldest saves of players who have left, until the queue is within its bounds. */
const bounded = (entries: ReadonlyArray<Entry>): ReadonlyArray<Entry> => {
  if (!isFull(entries)) return entries
  const playerId = entries.at(-1)?.playerId
  const oldest = entries.findIndex((entry) => entry.playerId !== playerId)
  if (oldest !== -1) return bounded(entries.toSpliced(oldest, 1))
  throw new ClientError("overloaded", "Too many saves wait: go online first.")
}

export class SaveQueue {
  readonly events = new Emitter<SaveEvents>()
  readonly #core: Core
  readonly #name: string
  #isSending = false
  #isDirty = false
  #failures = 0
  #cancelRetry: () => void = () => undefined

  constructor(core: Core) {
    this.#core = core
    this.#name = `${core.name}:saves`
    core.tokens.changes.on("change", (player) => {
      if (player !== null) this.#start()
    })
    core.connection.listen({
      status: (status) => {
        if (status === "online") this.#start()
      }
    })
    core.page.add(() => onWindow("online", () => this.#start()))
  }

  /** Stores the save on this device and starts to send it. */
  async add(key: string, data: unknown): Promise<void> {
    const { timers } = this.#core
    const entry = {
      playerId: await this.#player(),
      key,
      data,
      id: `${timers.now()}-${timers.random()}`
    }
    await this.#change((entries) =>
      bounded([...entries.filter((it) => !isSameSave(it, entry)), entry])
    )
    this.#start()
  }

  /** The waiting saves of the player, oldest first. */
  async list(): Promise<ReadonlyArray<QueuedSave>> {
    const playerId = await this.#player()
    const entries = await this.#load()
    return entries.flatMap((it) =>
      it.playerId === playerId ? [{ key: it.key, data: it.data }] : []
    )
  }

  /** The player of the stored session, also offline. */
  async #player(): Promise<string> {
    const { tokens } = this.#core
    try {
      await tokens.access()
    } catch (error) {
      if (tokens.player === null) throw error
    }
    return tokens.player?.id ?? ""
  }

  async #load(): Promise<ReadonlyArray<Entry>> {
    try {
      const text = await this.#core.storage.getItem(this.#name)
      // Only this class writes the value.
      return JSON.parse(text ?? "[]") as ReadonlyArray<Entry>
    } catch (error) {
      this.#core.log("saves", error)
      return []
    }
  }

  async #store(entries: ReadonlyArray<Entry>): Promise<void> {
    const { storage } = this.#core
    try {
      if (entries.length === 0) await storage.removeItem(this.#name)
      else await storage.setItem(this.#name, JSON.stringify(entries))
    } catch (cause) {
      const message = "The device refused the save: free space, or use saves.put."
      throw new ClientError("overloaded", message, undefined, cause)
    }
  }

  #change(next: (entries: ReadonlyArray<Entry>) => ReadonlyArray<Entry>): Promise<void> {
    const store = async () => this.#store(next(await this.#load()))
    return withWebLock(this.#name, this.#core.timers, store)
  }

  #start(): void {
    this.#isDirty = true
    if (this.#isSending) return
    this.#isSending = true
    this.#cancelRetry()
    withWebLock(`${this.#name}:send`, this.#core.timers, () => this.#drain())
      .catch((error: unknown) => this.#core.log("saves", error))
      .finally(() => {
        this.#isSending = false
        if (this.#isDirty) this.#start()
      })
  }

  /** Sends the saves of the player one after the other. */
  async #drain(): Promise<void> {
    while (this.#isDirty) {
      this.#isDirty = false
      const playerId = this.#core.tokens.player?.id
      const entry = (await this.#load()).find((it) => it.playerId === playerId)
      if (entry === undefined) continue
      const result = await this.#send(entry).catch((error: unknown) => {
        if (isError(error)) return error
        throw error
      })
      if (result instanceof Error && sessionErrors.has(result.code)) return
      if (result instanceof Error && transientErrors.has(result.code)) return this.#retryLater()
      this.#failures = 0
      this.#isDirty = true
      await this.#remove(entry)
      const { data, key } = entry
      if (result instanceof Error) this.events.emit("refused", { key, data, error: result })
      else this.events.emit("saved", result)
    }
  }

  #send({ data, key, playerId }: Entry): Promise<SaveItem> {
    const { http, tokens } = this.#core
    return authorized(tokens, (token) => {
      if (tokens.player?.id !== playerId) throw new ClientError("signed_out", "Another player.")
      return http.request("PUT /v1/saves/{key}", { token, params: inPath({ key }), body: { data } })
    })
  }

  /** Removes a save, unless a newer one of its key has replaced it. */
  #remove(sent: Entry): Promise<void> {
    return this.#change((entries) => entries.filter(({ id }) => id !== sent.id))
  }

  #retryLater(): void {
    const { timers } = this.#core
    const ceiling = Math.min(maxRetryMillis, firstRetryMillis * 2 ** this.#failures)
    this.#failures += 1
    const delay = ceiling * (0.5 + timers.random() / 2)
    this.#cancelRetry()
    this.#cancelRetry = timers.after(delay, () => this.#start())
  }
}
