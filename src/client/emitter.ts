/** Listeners by the name of the event, typed by a record of events. */

/** Ends a subscription; more than once does no harm. */
export type Unsubscribe = () => void

type Listeners<Events> = { [Name in keyof Events]?: Set<(event: Events[Name]) => void> }

export class Emitter<Events extends object> {
  readonly #listeners: Listeners<Events> = {}

  on<Name extends keyof Events>(name: Name, listener: (event: Events[Name]) => void): Unsubscribe {
    const listeners = this.#listeners[name] ?? new Set<(event: Events[Name]) => void>()
    this.#listeners[name] = listeners
    // The same function may listen twice, and each subscription ends by itself.
    const own = (event: Events[Name]) => listener(event)
    listeners.add(own)
    return () => listeners.delete(own)
  }

  /** A listener that throws does not keep the others from hearing: its error goes to the host. */
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
