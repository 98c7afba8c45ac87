/** A player's socket, observed: every frame both ways, and a way to send any frame or lose the socket. */
import { signal } from "@preact/signals"

/** A frame as text, with its direction. */
export interface Frame {
  readonly id: number
  readonly direction: "sent" | "received" | "note"
  readonly text: string
}

const framesMax = 300

/** The frames of one player, the newest last, and its socket. */
export class FrameLog {
  readonly frames = signal<ReadonlyArray<Frame>>([])
  readonly paused = signal(false)
  #count = 0
  #socket: WebSocket | undefined

  add(direction: Frame["direction"], text: string): void {
    if (this.paused.value) return
    this.#count += 1
    const frame = { id: this.#count, direction, text: withoutToken(text) }
    this.frames.value = [...this.frames.value.slice(1 - framesMax), frame]
  }

  clear(): void {
    this.frames.value = []
  }

  /** Sends a frame as it is written; false without an open socket. */
  send(text: string): boolean {
    if (this.#socket?.readyState !== WebSocket.OPEN) return false
    this.#socket.send(text)
    return true
  }

  /** Closes the connection, as a bad network does; the client reconnects by itself. */
  drop(): void {
    this.#socket?.close(dropCode)
  }

  /** A class for the client's option `WebSocket`. */
  observed() {
    const keep = (socket: WebSocket) => {
      this.#socket = socket
      socket.addEventListener("message", ({ data }) => this.add("received", String(data)))
      socket.addEventListener("close", ({ code }) => this.add("note", `closed ${code}`))
    }
    const sent = (text: string) => this.add("sent", text)
    return class extends WebSocket {
      constructor(url: string) {
        super(url)
        keep(this)
      }

      override send(data: string): void {
        sent(data)
        super.send(data)
      }
    }
  }
}

/** A code for applications; the client treats an unknown one as a lost connection. */
const dropCode = 4900

const withoutToken = (text: string): string => text.replace(/"token":"[^"]*"/, `"token":"..."`)
