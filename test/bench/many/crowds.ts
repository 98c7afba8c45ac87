/** How a crowd of players gets onto each server, and from there into rooms of eight. */
import { randomBytes } from "node:crypto"
import * as Schema from "effect/Schema"
import { encodeFrame, opcodes } from "../wire/frames.ts"
import type { Target } from "../wire/protocol.ts"
import { LoadSocket, type SocketEvents, type SocketProtocol } from "../wire/socket.ts"
import type { RunningServer } from "../machine/process.ts"
import { naive } from "../servers/naive.ts"
import { startPeer } from "../servers/peer-packages.ts"
import { socketIo } from "../servers/socket-io.ts"
import {
  ask,
  call,
  connectPlayer,
  type Service,
  signIn,
  socketUrl,
  startService
} from "./service.ts"

/** Players of one server, in the process of the load. */
export interface Crowd {
  /** Connects a player that the server then knows. */
  readonly connect: (index: number) => Promise<LoadSocket>
  /** Puts these into one room; absent where players are in a room from the start. */
  readonly seat?: (members: ReadonlyArray<LoadSocket>, room: number) => Promise<void>
}

/** Where the players connect, and where they sign in before that. */
export interface Addresses {
  readonly target: Target
  readonly signInAt: Target
}

export interface CrowdServer {
  readonly name: string
  readonly start: (core: number | undefined) => Promise<RunningServer & Partial<Service>>
  /** Whatever has to be there before the first of `count` players connects. */
  readonly gather: (addresses: Addresses, count: number, events: SocketEvents) => Promise<Crowd>
}

export const crowdRoomSize = 8

const config = {
  version: 1,
  features: { multiplayer: true },
  multiplayer: { modes: [{ key: "crowd", minPlayers: 2, maxPlayers: crowdRoomSize }] }
}

const ours: CrowdServer = {
  name: "ours",
  start: (core) => startService(core, config),
  gather: async ({ signInAt, target }, count, events) => {
    const tokens = await signIn(signInAt, count)
    return {
      connect: (index) => connectPlayer(target, tokens[index] ?? "", events),
      seat: async ([first, ...others]) => {
        if (first === undefined) return
        const roomId = await ask(first, { t: "create", mode: "crowd" })
        await Promise.all(others.map((socket) => ask(socket, { t: "join", roomId })))
      }
    }
  }
}

const naiveCrowd: CrowdServer = {
  name: naive.name,
  start: naive.start,
  gather: async ({ target }, _count, events) => ({
    connect: () => LoadSocket.connect(socketUrl(target), events),
    seat: async (members, room) => {
      const join = { t: "join", room: `room-${room}` }
      const joined = (text: string) => text.includes('"joined"') || undefined
      await Promise.all(members.map((socket) => socket.request(join, joined)))
    }
  })
}

const socketIoProtocol: SocketProtocol = {
  greeting: (text) => text.startsWith("0"),
  answer: (text) => (text === "2" ? "3" : undefined)
}

const socketIoCrowd: CrowdServer = {
  name: socketIo.name,
  start: socketIo.start,
  gather: async ({ target }, _count, events) => ({
    connect: async () => {
      const url = `${socketUrl(target)}/socket.io/?EIO=4&transport=websocket`
      const socket = await LoadSocket.connect(url, events, socketIoProtocol)
      await socket.ask("40", (text) => text.startsWith("40") || undefined)
      return socket
    },
    seat: async (members, room) => {
      const join = `420["join","room-${room}"]`
      const joined = (text: string) => text.startsWith("430") || undefined
      await Promise.all(members.map((socket) => socket.ask(join, joined)))
    }
  })
}

const colyseusJoined = 10
const colyseusProtocol: SocketProtocol = {
  greeting: (text) => text.charCodeAt(0) === colyseusJoined
}
const decodeSeat = Schema.decodeUnknownSync(
  Schema.Struct({
    sessionId: Schema.String,
    roomId: Schema.String,
    processId: Schema.String
  })
)

/** Colyseus's `joinOrCreate`, as its SDK does it: a seat over HTTP, then the socket. */
export async function joinOrCreate(
  target: Target,
  room: string,
  events: SocketEvents
): Promise<{ readonly socket: LoadSocket; readonly roomId: string }> {
  const url = `${target.url}/matchmake/joinOrCreate/${room}`
  const { processId, roomId, sessionId } = decodeSeat(await call("POST", url, {}, {}))
  const address = `${socketUrl(target)}/${processId}/${roomId}?sessionId=${sessionId}`
  const socket = await LoadSocket.connect(address, events, colyseusProtocol)
  const joined = Buffer.from([colyseusJoined])
  socket.write(encodeFrame(opcodes.binary, joined, randomBytes(4)))
  return { socket, roomId }
}

/** Starts Colyseus with rooms named `four` and `eight`, for as many. */
export const startColyseus = (core: number | undefined): Promise<RunningServer> =>
  startPeer("matchmaking-colyseus.mjs", core)

const colyseusCrowd: CrowdServer = {
  name: "colyseus",
  start: startColyseus,
  gather: async ({ target }, _count, events) => ({
    connect: async () => (await joinOrCreate(target, "eight", events)).socket
  })
}

export const crowdServers: ReadonlyArray<CrowdServer> = [
  ours,
  naiveCrowd,
  socketIoCrowd,
  colyseusCrowd
]
