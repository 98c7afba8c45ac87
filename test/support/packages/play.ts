/** A player who opens a room, sets its state and reads it. */

/** The module of a game. It imports the client from a package, or from the address of a service. */
export const playOf = (client: string): string => `
import { compose, rooms, sessions } from "${client}"

export const play = async (baseUrl, key, options) => {
  const client = compose({ baseUrl, key, ...options }, { sessions, rooms })
  const { displayName } = await client.sessions.ensure({ displayName: "Ada" })
  const room = await client.rooms.create({ mode: "default" })
  await room.confirmed.setState({ round: 7 })
  const { round } = room.state
  await room.leave()
  client.close()
  return displayName + " in round " + round
}
`

/** The same with types, and with the whole client. */
export const typedPlay = `
import { createClient, memoryStorage, type SessionStorage } from "@player-backend/client"

export const play = async (
  baseUrl: string,
  key: string,
  storage: SessionStorage = memoryStorage()
): Promise<string> => {
  const client = createClient({ baseUrl, key, storage })
  const { displayName } = await client.sessions.ensure({ displayName: "Ada" })
  const room = await client.rooms.create<{ round: number }>({ mode: "default" })
  await room.confirmed.setState({ round: 7 })
  const { round } = room.state
  await room.leave()
  client.close()
  return displayName + " in round " + round
}
`

/** What a game says that has played. */
export const played = "Ada in round 7"
