/**
 * The floor: what fan-out costs on Node without any entity. A frame is encoded once, and all frames
 * for a socket in one event-loop turn go out in one write.
 */
import type { Duplex } from "node:stream"
import { encodeFrame, opcodes } from "../wire/frames.ts"
import { freePort, launchServer } from "../machine/process.ts"
import { joinBroadcastRoom, serveBroadcast } from "./broadcast.ts"
import type { Peer } from "./peer.ts"

const maxOutboxBytes = 1024 * 1024

export const limit: Peer = {
  name: "limit",
  start: async (core) => {
    const port = await freePort()
    return launchServer({ script: import.meta.filename, core, port, args: [`${port}`] })
  },
  joinRoom: joinBroadcastRoom
}

interface Outbox {
  readonly raw: Duplex
  frames: Array<Buffer>
}

const dirty: Array<Outbox> = []

function push(outbox: Outbox, frame: Buffer): void {
  if (outbox.frames.push(frame) > 1) return
  if (dirty.push(outbox) === 1) setImmediate(flush)
}

function flush(): void {
  for (const outbox of dirty) {
    outbox.raw.write(Buffer.concat(outbox.frames))
    outbox.frames = []
    if (outbox.raw.writableLength > maxOutboxBytes) outbox.raw.destroy()
  }
  dirty.length = 0
}

if (import.meta.main) {
  serveBroadcast<Buffer>(Number(process.argv[2]), {
    encode: (text) => encodeFrame(opcodes.text, Buffer.from(text)),
    recipient: (_socket, raw) => {
      const outbox: Outbox = { raw, frames: [] }
      return (frame) => push(outbox, frame)
    }
  })
}
