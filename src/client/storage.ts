/**
 * Where the session is kept between visits: `localStorage` in a page that may use it, else memory. A
 * storage that fails never fails the client: the session then lives as long as the client does.
 */
import { Effect } from "effect"

/**
 * A place for one text by name. `localStorage` fits, and so do the asynchronous stores of mobile
 * frameworks.
 *
 * @example
 * createClient({ baseUrl, key, storage: window.sessionStorage })
 */
export interface SessionStorage {
  getItem(name: string): string | null | Promise<string | null>
  setItem(name: string, value: string): void | Promise<void>
  removeItem(name: string): void | Promise<void>
  /**
   * Tells that texts may have changed, for a storage of one's own that several clients share. Other
   * tabs' changes of `localStorage` are heard of without it.
   */
  onChange?(listener: () => void): void
}

/**
 * Keeps texts for as long as its clients live.
 *
 * @example
 * createClient({ baseUrl, key, storage: memoryStorage() }) // a new guest on every visit
 */
export const memoryStorage = (): SessionStorage => {
  const texts = new Map<string, string>()
  const listeners = new Set<() => void>()
  const changed = () => {
    for (const listener of listeners) listener()
  }
  return {
    getItem: (name) => texts.get(name) ?? null,
    setItem: (name, value) => {
      texts.set(name, value)
      changed()
    },
    removeItem: (name) => {
      texts.delete(name)
      changed()
    },
    onChange: (listener) => {
      listeners.add(listener)
    }
  }
}

/** The page's `localStorage`; a sandboxed frame may not even look at it. */
export const defaultStorage = (): SessionStorage => {
  try {
    return typeof document === "undefined" ? memoryStorage() : globalThis.localStorage
  } catch {
    return memoryStorage()
  }
}

/** One text of a storage, kept in memory too from the first failure on. */
export interface StoredText {
  readonly read: Effect.Effect<string | null>
  readonly write: (text: string | null) => Effect.Effect<void>
  /** Tells when somebody may have written, another tab above all. */
  readonly watch: (listener: () => void) => void
}

export const storedText = (storage: SessionStorage, name: string): StoredText => {
  let current = storage
  const attempt = <A>(use: (storage: SessionStorage) => A | Promise<A>): Effect.Effect<A> =>
    Effect.tryPromise(async () => use(current)).pipe(
      Effect.catch(() => {
        current = memoryStorage()
        return Effect.promise(async () => use(current))
      })
    )
  return {
    read: attempt((it) => it.getItem(name)),
    write: (text) =>
      attempt((it) => (text === null ? it.removeItem(name) : it.setItem(name, text))),
    watch: (listener) => {
      storage.onChange?.(listener)
      // A page hears of what the others store; `clear` names no key.
      if (typeof document === "undefined") return
      globalThis.addEventListener("storage", ({ key }) => {
        if (key === name || key === null) listener()
      })
    }
  }
}
