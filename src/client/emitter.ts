/** Typed event emitter: listeners by event name. */

/** Removes the listener. Calling it twice has no effect. */
export type Unsubscribe = () => void

/** Options of a listener. */
export interface ListenerOptions {
  /** Aborting it removes the listener, and all others with the same signal. */
  readonly signal?: AbortSignal
}

type Listeners<Events> = { [Name in keyof Events]?: Set<(event: Events[Name]) => void> }

export class Emitter<Events extends object> {
  readonly #listeners: Listeners<Events> = {}

  /** A property, so that the objects of the client pass it on as theirs. */
  readonly on = <Name extends keyof Events>(
    name: Name,
    listener: (event: Events[Name]) => void,
    { signal }: ListenerOptions = {}
  ): Unsubscribe => {
    const listeners = (this.#listeners[name] ??= new Set())
    // The wrapper lets one function subscribe twice and unsubscribe independently.
    const own = (event: Events[Name]) => listener(event)
    const stop = () => {
      listeners.delete(own)
      signal?.removeEventListener("abort", stop)
    }
    signal?.addEventListener("abort", stop)
    if (!signal?.aborted) listeners.add(own)
    return stop
  }

  /** Calls the listeners. It reports an error of one to the host, and still calls the others. */
  emit<Name extends keyof Events>(name: Name, event: Events[Name]): void {
    for (const listener of Array.from(this.#listeners[name] ?? [])) {
      try {
        listener(event)
      } catch (error) {
        queueMicrotask(() => {
          throw error
        })
      }
    }
  }
}
