/**
 * An emitter that loses no early events. It buffers them until the code that awaits the object had the
 * chance to add listeners.
 */
import { Emitter, type Unsubscribe } from "./emitter.ts"

/** The most buffered events; further ones are dropped. */
const bufferMax = 1024

/** An {@link Emitter} with a buffer for early events. */
export class BufferedEmitter<Events extends object> {
  readonly #emitter = new Emitter<Events>()
  #buffer: Array<() => void> | undefined = []

  on<Name extends keyof Events>(name: Name, listener: (event: Events[Name]) => void): Unsubscribe {
    return this.#emitter.on(name, listener)
  }

  /** Calls the listeners, or buffers the event until {@link BufferedEmitter.flush}. */
  emit<Name extends keyof Events>(name: Name, event: Events[Name]): void {
    const deliver = () => this.#emitter.emit(name, event)
    if (this.#buffer === undefined) deliver()
    else if (this.#buffer.length < bufferMax) this.#buffer.push(deliver)
  }

  /** Delivers the buffered events, in order, and stops buffering. */
  flush(): void {
    const buffer = this.#buffer ?? []
    this.#buffer = undefined
    for (const tell of buffer) tell()
  }
}
