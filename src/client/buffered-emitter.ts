/**
 * An emitter that loses no early events. It buffers them until the code that awaits the object had the
 * chance to add listeners.
 */
import { Emitter } from "./emitter.ts"

/** Maximum number of buffered events; the emitter drops further ones. */
const bufferMax = 1024

/** An {@link Emitter} with a buffer for early events. */
export class BufferedEmitter<Events extends object> extends Emitter<Events> {
  #buffer: Array<() => void> | undefined = []

  /** Calls the listeners, or buffers the event until {@link BufferedEmitter.flush}. */
  override emit<Name extends keyof Events>(name: Name, event: Events[Name]): void {
    if (this.#buffer === undefined) super.emit(name, event)
    else if (this.#buffer.length < bufferMax) this.#buffer.push(() => super.emit(name, event))
  }

  /** Delivers the buffered events, in order, and stops buffering. */
  flush(): void {
    const buffer = this.#buffer ?? []
    this.#buffer = undefined
    for (const deliver of buffer) deliver()
  }
}
