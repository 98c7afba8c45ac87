/**
 * What the `naive` and `limit` servers share: rooms by name, parse, one stringify per message, and
 * the protocol of their players. They differ only in how a text gets to a recipient.
 */
import { randomBytes } from "node:crypto"
import { createServer } from "node:http"
import type { Duplex } from "node:stream"
import { type WebSocket, WebSocketServer } from "ws"
import { MessageTemplate, messageType } from "../wire/message.ts"
import { LoadSocket } from "../wire/socket.ts"
import type { Player, RoomPlan } from "./peer.ts"

type ClientFrame =
  | { readonly t: "join"; readonly room: string }
  | { readonly t: "send"; readonly type: string; readonly data: unknown }

export interface Delivery<Encoded> {
  /** Runs once per message. */
  readonly encode: (text: string) => Encoded
  /** Runs once per connection; the function it returns runs once per recipient and message. */
  readonly recipient: (socket: WebSocket, raw: Duplex) => (message: Encoded) => void
}

const unixMillis = (): number => Math.round(performance.timeOrigin + performance.now())

/** Serves until the process ends; any plain HTTP request answers 200 (readiness). */
export function serveBroadcast<Encoded>(port: number, delivery: Delivery<Encoded>): void {
  const rooms = new Map<string, Map<string, (message: Encoded) => void>>()
  const sockets = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    maxPayload: 64 * 1024
  })

  const connect = (socket: WebSocket, raw: Duplex): void => {
    // As long as the service's own player ids, so that all servers deliver as many bytes.
    const from = `pl_${randomBytes(13).toString("hex")}`
    const deliver = delivery.recipient(socket, raw)
    let room = new Map<string, (message: Encoded) => void>()
    socket.on("message", (bytes) => {
      const frame: ClientFrame = JSON.parse(bytes.toString())
      if (frame.t === "join") {
        room = rooms.get(frame.room) ?? room
        rooms.set(frame.room, room.set(from, deliver))
        socket.send(JSON.stringify({ t: "joined", id: from }))
        return
      }
      const { type, data } = frame
      const message = delivery.encode(
        JSON.stringify({ t: "message", from, type, data, at: unixMillis() })
      )
      for (const [id, send] of room) if (id !== from) send(message)
    })
    socket.on("close", () => room.delete(from))
  }

  createServer((_request, response) => response.end("ready"))
    .on("upgrade", (request, raw, head) =>
      sockets.handleUpgrade(request, raw, head, (socket) => connect(socket, raw))
    )
    .listen(port, "127.0.0.1")
  process.once("disconnect", () => process.exit())
}

/** A connected player, who sends messages but has not joined a room. */
export async function broadcastPlayer(plan: RoomPlan, member: number) {
  const socket = await LoadSocket.connect(plan.target.url.replace("http:", "ws:"), {
    onDelivery: (ts) => plan.onDelivery(member, ts),
    onLost: plan.onLost
  })
  const template = new MessageTemplate(
    (data) => `{"t":"send","type":"${messageType}","data":${data}}`
  )
  const player: Player = { send: (seq, ts) => socket.write(template.fill(seq, ts)) }
  return { socket, player }
}

export async function joinBroadcastRoom(plan: RoomPlan): Promise<ReadonlyArray<Player>> {
  return Promise.all(
    Array.from({ length: plan.size }, async (_, member) => {
      const { player, socket } = await broadcastPlayer(plan, member)
      await socket.request({ t: "join", room: plan.name }, (text) => text.includes('"joined"'))
      return player
    })
  )
}
