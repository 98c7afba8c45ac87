/** The crowd of the connections benchmark, in a process of its own. */
import * as Schema from "effect/Schema"
import { Target } from "../wire/protocol.ts"
import type { LoadSocket } from "../wire/socket.ts"
import { type Crowd, crowdRoomSize, crowdServers } from "./crowds.ts"
import { busyPercent, inFlight } from "./pace.ts"
import { fail, obey } from "./worker.ts"

/** How many connects are under way at once: less than the backlog of a listening socket. */
const connectsAtATime = 64
const roomsAtATime = 8

export const Command = Schema.Union([
  Schema.Struct({
    t: Schema.Literal("gather"),
    server: Schema.String,
    target: Target,
    signInAt: Target,
    count: Schema.Int
  }),
  /** Connects until so many are. */
  Schema.Struct({ t: Schema.Literal("connect"), count: Schema.Int }),
  Schema.Struct({ t: Schema.Literal("seat") }),
  Schema.Struct({ t: Schema.Literal("close") })
])
export type Command = typeof Command.Type

export const Done = Schema.Struct({ millis: Schema.Number, busyPercent: Schema.Number })
export type Done = typeof Done.Type

let crowd: Crowd | undefined
const sockets: Array<LoadSocket> = []
const events = { onDelivery: () => undefined, onLost: fail }

async function connect(count: number, { connect }: Crowd): Promise<void> {
  const before = sockets.length
  await inFlight(count - before, connectsAtATime, async (index) => {
    sockets.push(await connect(before + index))
  })
}

async function seat({ seat }: Crowd): Promise<void> {
  const rooms = Math.floor(sockets.length / crowdRoomSize)
  await inFlight(rooms, roomsAtATime, async (room) => {
    await seat?.(sockets.slice(room * crowdRoomSize, (room + 1) * crowdRoomSize), room)
  })
}

async function act(command: Command): Promise<void> {
  if (command.t === "gather") {
    const server = crowdServers.find(({ name }) => name === command.server)
    crowd = await server?.gather(command, command.count, events)
    return
  }
  if (crowd === undefined) throw new Error("no crowd was gathered")
  switch (command.t) {
    case "connect":
      return connect(command.count, crowd)
    case "seat":
      return seat(crowd)
    case "close":
      for (const socket of sockets.splice(0)) socket.close()
  }
}

const decodeCommand = Schema.decodeUnknownSync(Command)

if (import.meta.main) {
  obey(async (command): Promise<Done> => {
    const started = performance.now()
    const busy = await busyPercent(() => act(decodeCommand(command)))
    return { millis: performance.now() - started, busyPercent: busy }
  })
}
