/**
 * Listeners that miss nothing: what comes before the code that awaits the object can have listened is
 * held, and told once that code has had its turn.
 */
import { Emitter, type Unsubscribe } from "./emitter.ts"

/** Events held for listeners that are yet to be added. */
const bufferMax = 1024

export class BufferedEmitter<Events extends object> {
  readonly #emitter = new Emitter<Events>()
  #buffer: Array<() => void> | undefined = []

  on<Name extends keyof Events>(name: Name, listener: (event: Events[Name]) => void): Unsubscribe {
    return this.#emitter.on(name, listener)
  }

  /** Tells the listeners, once there can be some. */
  emit<Name extends keyof Events>(name: Name, event: Events[Name]): void {
    const deliver = () => this.#emitter.emit(name, event)
    if (this.#buffer === undefined) deliver()
    else if (this.#buffer.length < bufferMax) this.#buffer.push(deliver)
  }

  /** Whoever awaited the object has had the time to listen. */
  flush(): void {
    const buffer = this.#buffer ?? []
    this.#buffer = undefined
    for (const tell of buffer) tell()
  }
}
