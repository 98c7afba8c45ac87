/**
 * Data of a view: from the cache at once and refreshed behind it, polled where it lives. Polling stops
 * while the tab is hidden.
 */
import { useCallback, useEffect, useRef, useState } from "preact/hooks"
import { ApiError, ask } from "../core/api.ts"
import { developer } from "../core/state.ts"

export interface Load<T> {
  readonly data: T | undefined
  readonly error: ApiError | undefined
  readonly refresh: () => void
}

/** Views that are kept for going back. */
const cachedMax = 60
const cache = new Map<string, unknown>()

const remember = (key: string, data: unknown): void => {
  cache.delete(key)
  cache.set(key, data)
  const [oldest] = cache.keys()
  if (cache.size > cachedMax && oldest !== undefined) cache.delete(oldest)
}

/** Signs out, and removes all data. */
export const signOut = async (): Promise<void> => {
  cache.clear()
  await ask("DELETE /dashboard/session")
  developer.value = null
}

const errorOf = (failure: unknown): ApiError =>
  failure instanceof ApiError ? failure : new ApiError(0, undefined, undefined)

/** Reads data under a key, which names everything that the data depends on. */
export const useLoad = <T>(
  key: string,
  read: (signal: AbortSignal) => Promise<T>,
  pollMillis?: number
): Load<T> => {
  const [, show] = useState(0)
  const [round, setRound] = useState(0)
  const current = useRef<{ key: string; error: ApiError | undefined }>({ key, error: undefined })
  if (current.current.key !== key) current.current = { key, error: undefined }
  const latest = useRef(read)
  latest.current = read
  const refresh = useCallback(() => setRound((before) => before + 1), [])
  useEffect(() => {
    const stop = new AbortController()
    const { signal } = stop
    const run = async () => {
      if (document.hidden && cache.has(key)) return
      const error = await latest.current(signal).then(
        (data) => {
          remember(key, data)
          return undefined
        },
        (failure: unknown) => errorOf(failure)
      )
      if (signal.aborted) return
      current.current = { key, error }
      show((before) => before + 1)
    }
    void run()
    const timer = pollMillis === undefined ? undefined : setInterval(() => void run(), pollMillis)
    const onShown = () => void run()
    if (pollMillis !== undefined) document.addEventListener("visibilitychange", onShown)
    return () => {
      stop.abort()
      clearInterval(timer)
      document.removeEventListener("visibilitychange", onShown)
    }
  }, [key, round, pollMillis])
  // The key names the type of the data.
  return { data: cache.get(key) as T | undefined, error: current.current.error, refresh }
}
