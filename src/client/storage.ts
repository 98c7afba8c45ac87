/**
 * Storage of the session between visits: the page's `localStorage` if available, else memory. If the
 * storage fails, the session lives in memory.
 */

/**
 * A key-value store for text. `localStorage` implements it, and so do the asynchronous stores of mobile
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
   * Adds a listener for changes, for a custom storage that several clients share. `localStorage` needs
   * none: the client observes changes by other tabs.
   */
  onChange?(listener: () => void): void
}

/**
 * An in-memory storage, shared by the clients that use the same object.
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

/** The page's `localStorage`, else memory: a sandboxed frame may not access it. */
export const defaultStorage = (): SessionStorage => {
  try {
    return typeof document === "undefined" ? memoryStorage() : globalThis.localStorage
  } catch {
    return memoryStorage()
  }
}

/** One entry of a storage. After the first failure it lives in memory. */
export interface StoredText {
  read(): Promise<string | null>
  write(text: string | null): Promise<void>
  /** Adds a listener for writes by others, such as another tab. */
  watch(listener: () => void): void
}

export const storedText = (storage: SessionStorage, name: string): StoredText => {
  let current = storage
  const attempt = async <A>(use: (storage: SessionStorage) => A | Promise<A>): Promise<A> => {
    try {
      return await use(current)
    } catch {
      current = memoryStorage()
      return use(current)
    }
  }
  return {
    read: () => attempt((it) => it.getItem(name)),
    write: (text) =>
      attempt((it) => (text === null ? it.removeItem(name) : it.setItem(name, text))),
    watch: (listener) => {
      storage.onChange?.(listener)
      // The event of `clear` has a null key.
      if (typeof document === "undefined") return
      globalThis.addEventListener("storage", ({ key }) => {
        if (key === name || key === null) listener()
      })
    }
  }
}
