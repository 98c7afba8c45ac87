/**
 * socket.io, spoken to in its own protocol (engine.io 4 over WebSocket, socket.io 5): `42["m",{}]` is
 * an event, `2` a ping that wants a `3`.
 */
import { MessageTemplate, messageType } from "../wire/message.ts"
import { LoadSocket, type SocketProtocol } from "../wire/socket.ts"
import { startPeer } from "./peer-packages.ts"
import type { Peer, Player, RoomPlan } from "./peer.ts"

const codes = { open: "0", ping: "2", pong: "3", connect: "40", event: "42" } as const
/** An event that wants acknowledgement 0, and that. */
const acknowledged = { event: "420", answer: "430" } as const

const protocol: SocketProtocol = {
  greeting: (text) => text.startsWith(codes.open),
  answer: (text) => (text === codes.ping ? codes.pong : undefined)
}

const opensWith = (start: string) => (text: string) => text.startsWith(start) || undefined

async function joinRoom(plan: RoomPlan): Promise<ReadonlyArray<Player>> {
  const url = `${plan.target.url.replace("http:", "ws:")}/socket.io/?EIO=4&transport=websocket`
  const join = acknowledged.event + JSON.stringify(["join", plan.name])
  return Promise.all(
    Array.from({ length: plan.size }, async (_, member) => {
      const events = {
        onDelivery: (ts: number) => plan.onDelivery(member, ts),
        onLost: plan.onLost
      }
      const socket = await LoadSocket.connect(url, events, protocol)
      await socket.ask(codes.connect, opensWith(codes.connect))
      await socket.ask(join, opensWith(acknowledged.answer))
      const template = new MessageTemplate((data) => `${codes.event}["${messageType}",${data}]`)
      return { send: (seq: number, ts: number) => socket.write(template.fill(seq, ts)) }
    })
  )
}

export const socketIo: Peer = {
  name: "socket.io",
  start: (core) => startPeer("socket-io.mjs", core),
  joinRoom
}
