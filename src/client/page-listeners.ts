/** Listeners of a client at its page. `close` removes them, and the next call adds them again. */

type Start = () => () => void

export const makePageListeners = () => {
  const starts: Array<Start> = []
  let stops: Array<() => void> | undefined = []
  return {
    /** Adds a listener by a function that returns its removal. */
    add: (start: Start) => {
      starts.push(start)
      stops?.push(start())
    },
    remove: () => {
      for (const stop of stops ?? []) stop()
      stops = undefined
    },
    /** Adds the listeners again. Returns false if they were not removed. */
    restore: () => {
      if (stops !== undefined) return false
      stops = starts.map((start) => start())
      return true
    }
  }
}
export type PageListeners = ReturnType<typeof makePageListeners>

/** Adds a listener to the window, if there is one. Returns its removal. */
export const onWindow = <Name extends string>(
  name: Name,
  listener: (event: Name extends keyof WindowEventMap ? WindowEventMap[Name] : Event) => void
): (() => void) => {
  if (typeof document === "undefined") return () => undefined
  // The types of the events are those of the platform.
  const handle = listener as (event: Event) => void
  globalThis.addEventListener(name, handle)
  return () => globalThis.removeEventListener(name, handle)
}

/** Runs when the page becomes visible or online, until the returned function is called. */
export const onWake = (wake: () => void): (() => void) => {
  // The event of the document bubbles to its window.
  const stopVisible = onWindow("visibilitychange", () => {
    if (!document.hidden) wake()
  })
  const stopOnline = onWindow("online", wake)
  return () => {
    stopVisible()
    stopOnline()
  }
}
