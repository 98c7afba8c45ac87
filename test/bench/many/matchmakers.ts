/** How players of each server ask for a room of four. */
import type { Target } from "../wire/protocol.ts"
import type { LoadSocket, SocketEvents } from "../wire/socket.ts"
import { joinOrCreate } from "./crowds.ts"
import { inFlight } from "./pace.ts"
import { ask, connectPlayer, signIn } from "./service.ts"

/** So many players who are about to ask. */
export interface Askers {
  /** Asks for one player; answers the id of the room that it then is in. */
  readonly match: (index: number) => Promise<string>
  /** All leave their rooms and are gone. */
  readonly leave: () => Promise<void>
}

export interface Matchmaker {
  readonly name: string
  /** Which of the servers it asks. */
  readonly server: "service" | "colyseus"
  readonly gather: (target: Target, count: number, events: SocketEvents) => Promise<Askers>
}

export const matchmakingConfig = {
  version: 1,
  features: { multiplayer: true },
  multiplayer: {
    modes: [{ key: "four", minPlayers: 4, maxPlayers: 4, fillTimeoutSeconds: 0 }]
  }
}

const connectsAtATime = 64

const quickMatch = (socket: LoadSocket): Promise<string> =>
  ask(socket, { t: "quickMatch", mode: "four" })

async function leaveRooms(sockets: ReadonlyArray<LoadSocket>): Promise<void> {
  await inFlight(sockets.length, connectsAtATime, async (index) => {
    const socket = sockets[index]
    if (socket === undefined) return
    await ask(socket, { t: "leave" })
    socket.close()
  })
}

/** The players are online already, as the players of a game are. */
const ours: Matchmaker = {
  name: "ours",
  server: "service",
  gather: async (target, count, events) => {
    const tokens = await signIn(target, count)
    const sockets: Array<LoadSocket> = []
    await inFlight(count, connectsAtATime, async (index) => {
      sockets.push(await connectPlayer(target, tokens[index] ?? "", events))
    })
    const match = async (index: number): Promise<string> => {
      const socket = sockets[index]
      if (socket === undefined) throw new Error(`player ${index} is not online`)
      return quickMatch(socket)
    }
    return { match, leave: () => leaveRooms(sockets) }
  }
}

/** Connects, authenticates with a token that the server has not seen yet, and then asks. */
const oursConnecting: Matchmaker = {
  name: "ours, connecting",
  server: "service",
  gather: async (target, count, events) => {
    const tokens = await signIn(target, count)
    const sockets: Array<LoadSocket> = []
    const match = async (index: number): Promise<string> => {
      const socket = await connectPlayer(target, tokens[index] ?? "", events)
      sockets.push(socket)
      return quickMatch(socket)
    }
    return { match, leave: () => leaveRooms(sockets) }
  }
}

/** There is no asking without connecting: a seat over HTTP, then a socket to the room. */
const colyseus: Matchmaker = {
  name: "colyseus",
  server: "colyseus",
  gather: async (target, _count, events) => {
    const sockets: Array<LoadSocket> = []
    return {
      match: async () => {
        const { roomId, socket } = await joinOrCreate(target, "four", events)
        sockets.push(socket)
        return roomId
      },
      leave: async () => {
        for (const socket of sockets) socket.close()
      }
    }
  }
}

export const matchmakers: ReadonlyArray<Matchmaker> = [ours, oursConnecting, colyseus]
