/** A player's socket, observed: every frame both ways, and a way to send any frame or lose the socket. */
import { signal } from "@preact/signals"
import { closeCodes } from "#rpc/close-codes"
import { texts } from "../../core/texts.ts"

const { playground: own } = texts

/** A frame as text and, where it is one, as its type with its fields; a note is only text. */
export interface Frame {
  readonly id: number
  readonly direction: "sent" | "received" | "note"
  readonly text: string
  readonly parsed: ParsedFrame | undefined
}

interface ParsedFrame {
  readonly type: string
  readonly fields: Readonly<Record<string, unknown>>
}

const parse = (text: string): ParsedFrame | undefined => {
  try {
    const { t, ...fields }: Readonly<Record<string, unknown>> = JSON.parse(text)
    return typeof t === "string" ? { type: t, fields } : undefined
  } catch {
    return undefined
  }
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
    const shown = withoutToken(text)
    const parsed = direction === "note" ? undefined : parse(shown)
    const frame = { id: this.#count, direction, text: shown, parsed }
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
      socket.addEventListener("close", ({ code }) =>
        this.add("note", own.closed(code, code === closeCodes.replaced))
      )
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
