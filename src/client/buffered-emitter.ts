/**
 * Listeners that miss nothing: what comes before the code that awaits the object can have listened is
 * held, and told once that code has had its turn.
 */
import { Emitter, type Unsubscribe } from "./emitter.ts"

/** Events held for listeners that are yet to be added. */
const heldMax = 1024

export class HeldEmitter<Events extends object> {
  readonly #emitter = new Emitter<Events>()
  #held: Array<() => void> | undefined = []

  on<Name extends keyof Events>(name: Name, listener: (event: Events[Name]) => void): Unsubscribe {
    return this.#emitter.on(name, listener)
  }

  /** Tells the listeners, once there can be some. */
  emit<Name extends keyof Events>(name: Name, event: Events[Name]): void {
    const tell = () => this.#emitter.emit(name, event)
    if (this.#held === undefined) tell()
    else if (this.#held.length < heldMax) this.#held.push(tell)
  }

  /** Whoever awaited the object has had the time to listen. */
  release(): void {
    const held = this.#held ?? []
    this.#held = undefined
    for (const tell of held) tell()
  }
}
