/**
 * An emitter of rooms and channels that loses no early events. It buffers them until the code that
 * awaits the object had the chance to add listeners.
 */
import { Emitter, type ListenerOptions, type Unsubscribe } from "./emitter.ts"

/** Maximum number of buffered events; the emitter drops further ones. */
const bufferMax = 1024

/** Events of which some are messages. */
interface Messages {
  readonly message: { readonly type: string }
}

type OfType<Events extends Messages, Type> = Events["message"] & { readonly type: Type }

/** An {@link Emitter} with a buffer for early events. */
export class BufferedEmitter<Events extends Messages> extends Emitter<Events> {
  #buffer: Array<() => void> | undefined = []

  /** Adds a listener for the messages of one type. */
  onMessage<Type extends string>(
    type: Type,
    listener: (message: OfType<Events, Type>) => void,
    options?: ListenerOptions
  ): Unsubscribe {
    const isOfType = (message: Events["message"]): message is OfType<Events, Type> =>
      message.type === type
    return this.on("message", (message) => isOfType(message) && listener(message), options)
  }

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
