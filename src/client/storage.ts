/**
 * Storage of the session between visits: the page's `localStorage` if available, else memory.
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
   * Adds a listener for changes, for a custom storage that several clients share, and returns a
   * function that removes it. `localStorage` needs none: the client observes changes by other tabs.
   */
  onChange?(listener: () => void): void | (() => void)
  /** True for a storage that is gone with the page. Then `sessions.isPersistent` is false. */
  readonly isVolatile?: boolean
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
      return () => void listeners.delete(listener)
    },
    isVolatile: true
  }
}

/**
 * The page's `localStorage`, else memory: a sandboxed frame may not access it, and in some web views it
 * is null. Undefined without a page, where one memory would make all visitors of a server one player.
 */
export const defaultStorage = (): SessionStorage | undefined => {
  if (typeof document === "undefined") return undefined
  try {
    return globalThis.localStorage ?? memoryStorage()
  } catch {
    return memoryStorage()
  }
}
