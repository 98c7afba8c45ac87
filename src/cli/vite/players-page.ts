/**
 * A page with the game twice, side by side, for two players in one window. Both halves are of one origin,
 * since browsers deny storage to foreign frames. So a script in the game gives each half a local storage
 * of its own, and with it its own guest.
 */

export const playersPath = "/__players"

const style =
  "body{margin:0;display:flex;height:100vh;gap:2px;background:#888}" +
  "iframe{flex:1;border:0;background:#fff}@media(max-width:50rem){body{flex-direction:column}}"

const frame = (player: number, path: string): string =>
  `<iframe name="player-${player}" title="Player ${player}" src="${path}"></iframe>`

/** Returns the page. `path` is that of the game. */
export const playersPage = (path: string): string =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Two players</title>` +
  `<style>${style}</style></head><body>${frame(1, path)}${frame(2, path)}</body></html>`

/** Runs first in the game. In a half of the page it prefixes every key of the local storage. */
export const ownStorageScript = `
if (/^player-\\d$/.test(window.name)) {
  const store = window.localStorage
  const prefix = window.name + ":"
  const keys = () => Object.keys(store).filter((key) => key.startsWith(prefix))
  const own = {
    getItem: (key) => store.getItem(prefix + key),
    setItem: (key, value) => store.setItem(prefix + key, value),
    removeItem: (key) => store.removeItem(prefix + key),
    key: (index) => keys()[index]?.slice(prefix.length) ?? null,
    clear: () => keys().forEach((key) => store.removeItem(key)),
    get length() {
      return keys().length
    }
  }
  const value = new Proxy(own, {
    get: (_, key) => (key in own ? own[key] : (own.getItem(key) ?? undefined)),
    set: (_, key, text) => (own.setItem(key, text), true),
    deleteProperty: (_, key) => (own.removeItem(key), true),
    ownKeys: () => keys().map((key) => key.slice(prefix.length)),
    getOwnPropertyDescriptor: (_, key) => ({
      value: own.getItem(key),
      configurable: true,
      enumerable: true
    })
  })
  Object.defineProperty(window, "localStorage", { value })
}`
